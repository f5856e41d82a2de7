-- Whether it is a number that a counter draws. What has another one was written by somebody else.
local function is_epoch(epoch)
  return epoch and string.match(epoch, '^%d+$') and tonumber(epoch) < 9007199254740992
end

