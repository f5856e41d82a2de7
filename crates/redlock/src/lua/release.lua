-- Frees a key on this node if the owner still holds it here, and notifies waiters if there is a channel.
-- Keys: lock, forced. Arguments: owner, channel (empty: the attempt never was a lock, and nobody waits for it).
-- Answers, in one text: held, and what the server refused to do for the waiters · gone · forced · refused, reply.
-- Invariant: the counter stays. A server that refuses to publish still releases.
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
