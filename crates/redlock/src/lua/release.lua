-- Frees a key on this node if the owner still holds it here, and notifies waiters if there is a channel.
-- Keys: lock, forced. Arguments: owner, channel (empty: the attempt never was a lock, and nobody waits for it).
-- Answers, in one text: held, and what the server refused to do for the waiters · gone · forced · refused, reply.
-- Invariant: the counter stays. A server that refuses to publish still releases.
local function release(k, a)
  local lock, forced = KEYS[k + 1], KEYS[k + 2]
  local owner, channel = ARGV[a + 1], ARGV[a + 2]

  local held = read('GET', lock)
  if held and string.sub(held, 1, 32) == owner then
    call('DEL', lock)
    local untold = channel ~= '' and refusal('PUBLISH', channel, '1')
    return untold and 'held ' .. untold or 'held'
  end
  return redis.pcall('GET', forced) == owner and 'forced' or 'gone'
end
