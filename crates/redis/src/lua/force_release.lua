-- Frees a key whoever holds it, leaves word for the holder, and signals.
-- Keys: lock, forced. Arguments: channel, how many ms beyond the lease the word is kept.
-- Answers: held, entry, ms left (what it was), and what the server refused to do for those who wait ·
-- free · foreign, key, type · refused, reply.
-- Never touches the counter. Where there is no room for the word, the holder learns that it lost the key, not why.
local lock, forced = KEYS[1], KEYS[2]
local channel, grace = ARGV[1], ARGV[2]

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
local refused = type(told) == 'table' and 'refused ' .. told.err .. ' (PUBLISH)' or nil
return { 'held', held, string.format('%.0f', left), refused }
