-- Frees a key if the owner still holds it: grants it to the first in line, or signals that it is free. An owner who does
-- not hold it gives up its place in line.
-- Keys: lock, fence, line. Arguments: owner, channel.
-- Answers, in one text: held (until now) · gone · refused, reply.
-- A server that does not let us publish does not keep us from releasing.
local function release(k, a)
  local lock, fence, line = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local owner, channel = ARGV[a + 1], ARGV[a + 2]

  local held = redis.pcall('GET', lock)
  if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return 'refused ' .. held.err
  end
  if type(held) ~= 'string' or string.sub(held, 1, 32) ~= owner then
    leave(line, owner)
    if not held then
      serve(lock, fence, line)
    end
    return 'gone'
  end
  if serve(lock, fence, line) then
    return 'held'
  end
  local deleted = redis.pcall('DEL', lock)
  if type(deleted) == 'table' then
    return 'refused ' .. deleted.err
  end
  redis.pcall('PUBLISH', channel, '1')
  return 'held'
end
