-- Grants a key to an owner, or says how long others keep it out, or puts the owner into the queue of the key.
-- Keys: lock, counter, queue, readers. Arguments: owner (32 hex digits), mode (`w` or `r`), lease in ms, metadata (what follows the
-- first member of a JSON object), inbox (as in `queue.lua`; empty, if the owner does not wait).
-- Answers, in one text: granted, epoch · busy, ms left · queued, ms left, epoch of the newest grant or -, the largest epoch that a
-- grant from the queue may have while the place counts · spent, key · foreign, key, type · refused, reply.
-- Invariant: an owner that asks again gets the same answer and no longer lease; whoever stands in the queue goes first, so that a
-- writer that waits there holds back later readers, and a reader later writers.
local function try_acquire(k, a)
  local lock, fence, line = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local owner, mode, lease = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local metadata, inbox = ARGV[a + 4], ARGV[a + 5]

  local known = call('HMGET', lock, 'writer', owner)
  local field, _, number = held_by(lock, owner, known)
  if field then
    -- Written once more: a grant from the queue was written by another process, and `WAIT` counts what this connection wrote.
    call('HSET', lock, field, known[field == 'writer' and 1 or 2])
    return 'granted ' .. number
  end

  local there = call('EXISTS', lock, line)
  local outcome, mine, unserved = 'free', nil, nil
  if there > (known[1] and 1 or 0) then
    outcome, mine, unserved = serve(lock, fence, line, owner, lease)
  end
  if mine then
    return 'granted ' .. mine
  elseif there == 0 then
    outcome = give(lock, fence, owner, mode, lease, metadata, true)
  elseif outcome == 'free' or outcome == 'nobody' then
    outcome = grant_waiter(lock, fence, owner, lease, mode .. metadata)
  end

  local left = 1
  if outcome == 'later' then
    left = 100
  elseif outcome == 'taken' then
    left = math.max(1, (in_the_way(lock, 'w') or 0) - clock())
  elseif outcome ~= 'soon' then
    return unserved or outcome
  end
  if inbox == '' or not queues().queue(line, owner, inbox, lease, mode .. metadata) then
    return string.format('busy %d', left)
  end
  -- Of all grants so far: a late notification of one that is over is older than this answer.
  local newest = string.match(call('GET', fence) or '', '^epoch (%d+)$')
  local latest = math.max(tonumber(newest) or 0, clock_ticks()) + 16 * (queues().COUNTS + 1)
  return string.format('queued %d %s %d', left, newest or '-', latest)
end

