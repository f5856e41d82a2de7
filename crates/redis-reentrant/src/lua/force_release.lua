-- Frees a key with all its levels whoever holds it, or only a lease with one epoch, leaves a note for the holder, and notifies
-- waiters.
-- Keys: lock, forced. Arguments: channel, how many ms beyond the lease the note is kept, that epoch, or nothing for any.
-- Answers: held, epoch, metadata, ms left (as it was), and what the server refused to do for the waiters ·
-- free (of the one that is meant) · foreign, key, type · refused, reply.
-- Invariant: the counter stays. Where there is no room for the note, the holder learns that it lost the key, not why.
local lock, forced = KEYS[1], KEYS[2]
local channel, grace, only = ARGV[1], ARGV[2], ARGV[3]

local held = redis.pcall('HMGET', lock, 'owner', 'epoch', 'metadata')
if held.err then
  if string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return { 'refused', held.err .. ' (HMGET)' }
  end
  local kind = redis.pcall('TYPE', lock)
  return { 'foreign', lock, kind.ok or '' }
end
local owner, epoch, metadata = held[1], held[2], held[3]
if not owner or not is_epoch(epoch) then
  local fields = redis.pcall('HLEN', lock)
  if type(fields) == 'table' then
    return { 'refused', fields.err .. ' (HLEN)' }
  end
  if fields > 0 then
    return { 'foreign', lock, 'a hash of somebody else' }
  end
  return { 'free' }
end
if only ~= '' and only ~= epoch then
  return { 'free' }
end
local left = redis.pcall('PTTL', lock)
if type(left) == 'table' then
  return { 'refused', left.err .. ' (PTTL)' }
end
local kept = string.format('%.0f', math.max(left, 0) + tonumber(grace))
redis.pcall('SET', forced, epoch .. ' ' .. owner, 'PX', kept)
local deleted = redis.pcall('DEL', lock)
if type(deleted) == 'table' then
  return { 'refused', deleted.err .. ' (DEL)' }
end
local told = redis.pcall('PUBLISH', channel, '1')
local refused = type(told) == 'table' and 'refused ' .. told.err .. ' (PUBLISH)' or nil
return { 'held', epoch, metadata or '', string.format('%.0f', left), refused }
