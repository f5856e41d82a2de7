-- Frees a key whoever holds it, or only one grant, leaves word for the holder, and signals.
-- Keys: lock, forced. Arguments: channel, how many ms beyond the lease the word is kept, and whom to take it from: an owner or
-- an epoch; empty for whoever holds it; and the channel on which all processes hear that a lock was taken from its holder, if there
-- is one.
-- Answers: held, entry, ms left (what it was), and what the server refused to do for those who wait ·
-- free (of the one that is meant) · foreign, key, type · refused, reply.
-- Never touches the counter. Where there is no room for the word, the holder learns that it lost the key, not why.
local lock, forced = KEYS[1], KEYS[2]
local channel, grace, only = ARGV[1], ARGV[2], ARGV[3]

local held = redis.pcall('GET', lock)
if not held then
  return { 'free' }
end
if type(held) == 'table' then
  if string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return { 'refused', held.err .. ' (GET)' }
  end
  local kind = redis.pcall('TYPE', lock)
  return { 'foreign', lock, kind.ok or '' }
end
local owner, epoch = string.match(held, '^(%x+) (%S+) ')
if only ~= '' and only ~= owner and only ~= epoch then
  return { 'free' }
end
local left = redis.pcall('PTTL', lock)
if type(left) == 'table' then
  return { 'refused', left.err .. ' (PTTL)' }
end
local kept = string.format('%.0f', math.max(left, 0) + tonumber(grace))
redis.pcall('SET', forced, string.sub(held, 1, 32), 'PX', kept)
local deleted = redis.pcall('DEL', lock)
if type(deleted) == 'table' then
  return { 'refused', deleted.err .. ' (DEL)' }
end
local told = redis.pcall('PUBLISH', channel, '1')
if ARGV[4] then
  told = redis.pcall('PUBLISH', ARGV[4], lock)
end
local refused = type(told) == 'table' and 'refused ' .. told.err .. ' (PUBLISH)' or nil
return { 'held', held, string.format('%.0f', left), refused }
