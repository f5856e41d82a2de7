-- Frees a key on this node if the owner still holds it here, and signals that if there is a channel.
-- Keys: lock, forced. Arguments: owner, channel (empty: what is given back was never a lock, nobody waits for it).
-- Answers, in one text: held · gone · forced · refused, reply.
-- Never touches the counter. A server that does not let us publish does not keep us from releasing.
local function release(k, a)
  local lock, forced = KEYS[k + 1], KEYS[k + 2]
  local owner, channel = ARGV[a + 1], ARGV[a + 2]

  local held = redis.pcall('GET', lock)
  if type(held) == 'string' and string.sub(held, 1, 32) == owner then
    local deleted = redis.pcall('DEL', lock)
    if type(deleted) == 'table' then
      return 'refused ' .. deleted.err
    end
    if channel ~= '' then
      redis.pcall('PUBLISH', channel, '1')
    end
    return 'held'
  end
  if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return 'refused ' .. held.err
  end
  return redis.pcall('GET', forced) == owner and 'forced' or 'gone'
end
