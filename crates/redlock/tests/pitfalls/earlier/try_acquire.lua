-- First round: takes a key on this node if it is free, and answers what the epoch must exceed here.
-- Keys: lock, fence, marker. Arguments: owner (32 hex digits), lease in ms, metadata (what follows the first member of a
-- JSON object).
-- Answers, in one text: granted, seed, epoch or - · taken, ms left, first digits of the owner that has it · claimed, and the
-- same of an owner without an epoch · reset · endless, key · foreign, key, type · refused, reply.
-- Invariant: everything is checked before anything is written, and the counter stays: only the second round knows the epoch.
-- An owner that asks again gets the same answer and no longer lease.
local function try_acquire(k, a)
  local lock, fence, marker = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local owner, lease, metadata = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]

  -- A node without a marker in service has lost what it promised.
  local mark = redis.pcall('GET', marker)
  if type(mark) == 'table' then
    return script_error(marker, mark.err)
  end
  if not mark or string.sub(mark, 1, 3) ~= 'up ' then
    return 'reset'
  end

  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then
    return script_error(lock, held.err)
  end
  if held and string.sub(held, 1, 32) ~= owner then
    local left = redis.pcall('PTTL', lock)
    if refusal(left, 'PTTL') then
      return refusal(left, 'PTTL')
    elseif left < 0 then
      return 'endless ' .. lock
    end
    local how = string.match(held, '^%x+ %- ') and 'claimed ' or 'taken '
    return how .. string.format('%.0f', left) .. ' ' .. (string.match(held, '^%x%x%x%x%x%x%x%x') or 'foreign')
  end

  local last = redis.pcall('GET', fence)
  if type(last) == 'table' then
    return script_error(fence, last.err)
  end
  local wrong = last and no_counter(last)
  if wrong then
    return 'foreign ' .. fence .. ' ' .. wrong
  end
  local time = redis.pcall('TIME')
  if refusal(time, 'TIME') then
    return refusal(time, 'TIME')
  end
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local since = string.format('%.0f', now)
  if no_counter(since) then
    return 'refused the clock is beyond the year 2248'
  end
  local seed = last and tonumber(last) > now and string.format('%.0f', last) or since
  if held then
    return 'granted ' .. seed .. ' ' .. (string.match(held, '^%x+ (%d+)') or '-')
  end

  local entry = owner .. ' - {"since":' .. since .. metadata
  local written = redis.pcall('SET', lock, entry, 'PX', lease)
  if refusal(written, 'SET') then
    return refusal(written, 'SET')
  end
  return 'granted ' .. seed .. ' -'
end
