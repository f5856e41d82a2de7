-- Frees keys that their owners still hold: grants them to the first in their queues, or notifies that they are free. Owners
-- that do not hold their key give up their place in its queue.
-- Keys of each: lock, counter, queue. Arguments of each: owner.
-- Answers, in one text each: held (until now), and what the server refused to do for the waiters · gone · refused, reply.
-- Invariant: a server that refuses to read the queue or to publish still releases; the waiters are served when one asks.

-- One key that somebody waits for, or that the owner does not hold.
local function give_back(lock, fence, line, owner)
  local line_up, held = queues(), read('GET', lock)
  if not held or string.sub(held, 1, 32) ~= owner then
    line_up.leave(line, owner)
    if held == false then
      pcall(line_up.serve, lock, fence, line)
    end
    return 'gone'
  end
  local done, outcome, _, _, unserved = pcall(line_up.serve, lock, fence, line)
  if outcome ~= 'served' then
    call('DEL', lock)
    -- The channel of the key has the name of its lock but for the last part.
    local untold = refusal('PUBLISH', string.gsub(lock, 'lock$', 'freed'), '1')
    unserved = not done and refused(outcome) or untold
  end
  return unserved and 'held ' .. unserved or 'held'
end

local function release(count, k, a)
  local locks = {}
  for i = 1, count do
    locks[i] = KEYS[k + 3 * i - 2]
  end
  local known = call('MGET', unpack(locks))

  -- Nobody waits for those that are freed here, all at once.
  local answers, freed = {}, {}
  for i = 1, count do
    local held = known[i]
    if held and string.sub(held, 1, 32) == ARGV[a + i] and not is_waited_for(held) and not freed[locks[i]] then
      freed[#freed + 1], freed[locks[i]] = locks[i], true
      answers[i] = 'held'
    end
  end
  local kept = freed[1] and refusal('DEL', unpack(freed))
  for i = 1, count do
    if not answers[i] then
      answers[i] = alone(give_back, locks[i], KEYS[k + 3 * i - 1], KEYS[k + 3 * i], ARGV[a + i])
    elseif kept then
      answers[i] = kept
    end
  end
  return answers
end

