-- Frees a key if the owner still holds it, and signals that.
-- Keys: lock. Arguments: owner, channel.
-- Answers: held (until now) · gone · refused and the reply.
-- Never touches the counter. A server that does not let us publish does not keep us from releasing.
local lock = KEYS[1]
local owner, channel = ARGV[1], ARGV[2]

local held = redis.pcall('GET', lock)
if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
  return { 'refused ' .. held.err }
end
if type(held) ~= 'string' or string.sub(held, 1, 32) ~= owner then
  return { 'gone' }
end
local deleted = redis.pcall('DEL', lock)
if type(deleted) == 'table' then
  return { 'refused ' .. deleted.err }
end
redis.pcall('PUBLISH', channel, '1')
return { 'held' }
