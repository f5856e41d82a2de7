-- Frees a key if the owner still holds it: grants the key to the first in its queue, or notifies that it is free. An owner
-- that does not hold the key gives up its place in the queue.
-- Keys: lock, fence, line. Arguments: owner, channel.
-- Answers, in one text: held (until now), and what the server refused to do for the waiters · gone · refused, reply.
-- Invariant: a server that refuses to read the queue or to publish still releases; the waiters are served when one asks.
local function release(k, a)
  local lock, fence, line = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local owner, channel = ARGV[a + 1], ARGV[a + 2]

  local held = redis.pcall('GET', lock)
  if refusal(held, 'GET') then
    return refusal(held, 'GET')
  end
  if type(held) ~= 'string' or string.sub(held, 1, 32) ~= owner then
    local refused = leave(line, owner)
    if not refused and not held then
      serve(lock, fence, line)
    end
    return refused or 'gone'
  end
  local outcome, why, _, refused = serve(lock, fence, line)
  if outcome ~= 'served' then
    local deleted = redis.pcall('DEL', lock)
    if refusal(deleted, 'DEL') then
      return refusal(deleted, 'DEL')
    end
    refused = outcome == 'failed' and why or refusal(redis.pcall('PUBLISH', channel, '1'), 'PUBLISH')
  end
  return refused and 'held ' .. refused or 'held'
end
