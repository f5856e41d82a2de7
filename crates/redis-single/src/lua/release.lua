-- Frees a key if the owner still holds it, and signals that.
-- Keys: lock. Arguments: owner, channel.
-- Answers, in one text: held (until now) · gone · refused, reply.
-- Never touches the counter. A server that does not let us publish does not keep us from releasing.
local function release(k, a)
  local lock = KEYS[k + 1]
  local owner, channel = ARGV[a + 1], ARGV[a + 2]

  local held = redis.pcall('GET', lock)
  if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return 'refused ' .. held.err
  end
  if type(held) ~= 'string' or string.sub(held, 1, 32) ~= owner then
    return 'gone'
  end
  local deleted = redis.pcall('DEL', lock)
  if type(deleted) == 'table' then
    return 'refused ' .. deleted.err
  end
  redis.pcall('PUBLISH', channel, '1')
  return 'held'
end
