-- Grants keys to owners, or says how long others hold them, or puts the owners into the queues of the keys.
-- Keys of each: lock, counter, queue. Arguments: lease in ms, metadata (what follows the first member of a JSON object), inbox (see
-- below); and of each: owner (32 hex digits).
-- An inbox is as in `queue.lua`; or empty, if the owner does not wait; or `*`, if it waits without a place in the queue.
-- Answers, in one text each: granted, epoch · busy, ms left · queued, ms left, epoch of the holder or -, the largest epoch that
-- a grant from the queue may have while the place counts · endless, key · spent, key · foreign, key, type · refused, reply.
-- Invariant: an owner that asks again gets the same answer and no longer lease; a free key with waiters goes to the first.

-- One key that is held, or that somebody may wait for.
local function contend(lock, fence, line, owner, lease, metadata, inbox)
  local line_up, held = queues(), call('GET', lock)
  if held and string.sub(held, 1, 32) == owner then
    return 'granted ' .. (string.match(held, '^%x+ (%d+)') or '')
  end
  local left, number
  if held then
    number = string.match(held, '^%x+ (%d+)')
  else
    local outcome, who, drawn = line_up.serve(lock, fence, line, owner, lease)
    if outcome == 'free' or outcome == 'nobody' then
      local give = outcome == 'free' and grant or grant_waiter
      local answer = give(lock, fence, owner, lease, metadata)
      return answer == 'soon' and 'busy 1' or answer
    elseif outcome == 'soon' then
      left = 1
    elseif outcome == 'later' then
      left = 100
    elseif who == owner then
      return 'granted ' .. drawn
    end
    number = drawn
  end

  left = left or call('PTTL', lock)
  if left < 0 then
    return 'endless ' .. lock
  end
  if inbox ~= '' and held then
    wait_for(lock, held)
  end
  if inbox == '' or inbox == '*' or not line_up.queue(line, owner, inbox, lease, metadata) then
    return string.format('busy %d', left)
  end
  local latest = math.max(tonumber(number) or 0, clock_ticks()) + 16 * (line_up.COUNTS + 1)
  return string.format('queued %d %s %d', left, number or '-', latest)
end

-- The names of locks and then of their counters; and of the same locks and then of their queues.
local function names_of(count, k)
  local names, there = {}, {}
  for i = 1, count do
    local lock = KEYS[k + 1]
    names[i], names[count + i], there[i], there[count + i] = lock, KEYS[k + 2], lock, KEYS[k + 3]
    k = k + 3
  end
  return names, there
end

-- Draws epochs for the keys that are free, all counters in one command, before any lock is written. Two keys of one counter may get
-- one number: each counts by itself. Answers an epoch for each, and an answer where there is none; neither, if there is no
-- counter yet, or another type, which `MGET` does not show.
local function numbers_for(count, names, known)
  local numbers, answers, counters = {}, {}, {}
  for i = 1, count do
    local fence, last = names[count + i], known[count + i]
    if last and not known[i] then
      local number, why = number_after(fence, last)
      if number then
        numbers[i], counters[#counters + 1], counters[#counters + 2] = number, fence, 'epoch ' .. number
      else
        answers[i] = why == 'soon' and 'busy 1' or why
      end
    end
  end
  if counters[1] then
    call('MSET', unpack(counters))
  end
  return numbers, answers
end

local function try_acquire(count, k, a)
  local lease, metadata, inbox = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local names, there = names_of(count, k)
  local known = call('MGET', unpack(names))
  -- What is there beside the locks that are shown: queues, and locks of another type, which `MGET` does not show.
  local unseen = call('EXISTS', unpack(there))
  for i = 1, count do
    unseen = known[i] and unseen - 1 or unseen
  end
  local numbers, answers = {}, {}
  if unseen == 0 then
    numbers, answers = numbers_for(count, names, known)
  end
  local entry = ' ' .. since() .. metadata
  for i = 1, count do
    local lock, owner, number, answer = names[i], ARGV[a + 3 + i], numbers[i], answers[i]
    local granted = number and redis.pcall('SET', lock, owner .. ' ' .. number .. entry, 'PX', lease, 'NX')
    if granted then
      answer = granted.ok and 'granted ' .. number or alone(expect, granted, 'SET')
    end
    -- Otherwise it is held, perhaps since this batch, or somebody may wait.
    answers[i] = answer or alone(contend, lock, names[count + i], there[count + i], owner, lease, metadata, inbox)
  end
  return answers
end

