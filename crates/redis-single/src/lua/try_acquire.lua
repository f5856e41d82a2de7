-- Grants a key to an owner, or says how long another holds it, or puts the owner into the queue of the key.
-- Keys: lock, fence, line. Arguments: owner (32 hex digits), lease in ms, lifetime of the counter in ms, metadata (what
-- follows the first member of a JSON object), inbox (see `queue.lua`; empty: the owner does not queue).
-- Answers, in one text: granted, epoch · busy, ms left · queued, ms left, epoch of the holder or -, the largest epoch that
-- a grant from the queue may have while the place counts · endless, key · spent, key · foreign, key, type · refused, reply.
-- Invariant: an owner that asks again gets the same answer and no longer lease; a free key with waiters goes to the first.
local function try_acquire(k, a)
  local lock, fence, line = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local owner, lease, lifetime, metadata, inbox = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]

  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then
    return script_error(lock, held.err)
  end
  if held and string.sub(held, 1, 32) == owner then
    return 'granted ' .. (string.match(held, '^%x+ (%d+)') or '')
  end
  local left, number
  if held then
    number = string.match(held, '^%x+ (%d+)')
  else
    local outcome, who, drawn = serve(lock, fence, line, owner, lease)
    if outcome == 'failed' then
      return who
    elseif outcome == 'nobody' then
      return grant(lock, fence, owner, lease, lifetime, metadata)
    elseif who == owner then
      return 'granted ' .. drawn
    elseif outcome == 'later' then
      left = 100
    end
    number = drawn
  end

  left = left or redis.pcall('PTTL', lock)
  if refusal(left, 'PTTL') then
    return refusal(left, 'PTTL')
  elseif left < 0 then
    return 'endless ' .. lock
  end
  local queued, refused = false, nil
  if inbox ~= '' then
    queued, refused = queue(line, owner, inbox, lease, lifetime, metadata)
  end
  if refused or not queued then
    return refused or string.format('busy %d', left)
  end
  local latest = math.max(tonumber(number) or 0, clock()) + COUNTS
  return string.format('queued %d %s %d', left, number or '-', latest)
end
