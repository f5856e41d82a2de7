-- Frees a key on this node if the owner still holds it here, and signals that if there is a channel.
-- Keys: lock, forced. Arguments: owner, channel (empty: what is given back was never a lock, nobody waits for it).
-- Answers, in one text: held, and what the server refused to do for those who wait · gone · forced · refused, reply.
-- Never touches the counter. A server that does not let us publish does not keep us from releasing.
local function release(k, a)
  local lock, forced = KEYS[k + 1], KEYS[k + 2]
  local owner, channel = ARGV[a + 1], ARGV[a + 2]

  local held = redis.pcall('GET', lock)
  if type(held) == 'string' and string.sub(held, 1, 32) == owner then
    local refused = refusal(redis.pcall('DEL', lock), 'DEL')
    if refused then
      return refused
    end
    refused = channel ~= '' and refusal(redis.pcall('PUBLISH', channel, '1'), 'PUBLISH')
    return refused and 'held ' .. refused or 'held'
  end
  if refusal(held, 'GET') then
    return refusal(held, 'GET')
  end
  return redis.pcall('GET', forced) == owner and 'forced' or 'gone'
end
