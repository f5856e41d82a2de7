-- Whether a text is an epoch that a counter gives. An entry with another number was written by somebody else.
local function is_epoch(epoch)
  return epoch and string.match(epoch, '^%d+$') and tonumber(epoch) < 9007199254740992
end

-- The answer for a hash under the name of a lock that is not one: older, key · foreign, key, what it is.
local function not_ours(lock)
  local old = redis.pcall('HMGET', lock, 'owner', 'tenure')
  if not old.err and old[1] and is_epoch(old[2]) then
    return { 'older', lock }
  end
  return { 'foreign', lock, 'a hash of somebody else' }
end

