-- Whether a text is an epoch that a counter gives. An entry with another number was written by somebody else.
local function is_epoch(epoch)
  return epoch and string.match(epoch, '^%d+$') and tonumber(epoch) < 9007199254740992
end

