-- Frees keys that their owners still hold: grants them to the first in their queues, or notifies that they are free. Owners
-- that do not hold their key give up their place in its queue.
-- Keys of each: lock, counter, queue. Arguments of each: owner.
-- Answers, in one text each: held (until now), and what the server refused to do for the waiters · gone · refused, reply.
-- Invariant: a server that refuses to read the queue or to publish still releases; the waiters are served when one asks.

-- One key that somebody waits for, or that the owner does not hold.
local function give_back(lock, fence, line, owner)
  local line_up, held = queues(), redis.pcall('GET', lock)
  if refusal(held, 'GET') then
    return refusal(held, 'GET')
  end
  if type(held) ~= 'string' or string.sub(held, 1, 32) ~= owner then
    local refused = line_up.leave(line, owner)
    if not refused and not held then
      line_up.serve(lock, fence, line)
    end
    return refused or 'gone'
  end
  local outcome, why, _, refused = line_up.serve(lock, fence, line)
  if outcome ~= 'served' then
    local deleted = redis.pcall('DEL', lock)
    if refusal(deleted, 'DEL') then
      return refusal(deleted, 'DEL')
    end
    -- The channel of the key has the name of its lock but for the last part.
    local told = redis.pcall('PUBLISH', string.gsub(lock, 'lock$', 'freed'), '1')
    refused = outcome == 'failed' and why ~= 'soon' and why or refusal(told, 'PUBLISH')
  end
  return refused and 'held ' .. refused or 'held'
end

local function release(count, k, a)
  local locks = {}
  for i = 1, count do
    locks[i] = KEYS[k + 3 * i - 2]
  end
  local known = expect(redis.pcall('MGET', unpack(locks)), 'MGET')

  -- Nobody waits for those that are freed here, all at once.
  local answers, freed = {}, {}
  for i = 1, count do
    local held = known[i]
    if held and string.sub(held, 1, 32) == ARGV[a + i] and not is_waited_for(held) and not freed[locks[i]] then
      freed[#freed + 1], freed[locks[i]] = locks[i], true
      answers[i] = 'held'
    end
  end
  local deleted = freed[1] and redis.pcall('DEL', unpack(freed))
  local refused = refusal(deleted, 'DEL')
  for i = 1, count do
    if not answers[i] then
      answers[i] = alone(give_back, locks[i], KEYS[k + 3 * i - 1], KEYS[k + 3 * i], ARGV[a + i])
    elseif refused then
      answers[i] = refused
    end
  end
  return answers
end

