-- First round: takes a key on this node if it is free, and with it the number that is proposed, if it can have that.
-- Keys: lock, fence, marker. Arguments: owner (32 hex digits), proposal (0: none; -: the grant has no number), lease in ms,
-- lifetime of the counter in ms, metadata (what follows the first member of a JSON object).
-- Answers, in one text: granted, clock, floor and the owner's number or - · taken, ms left, first digits of the owner that has
-- it · claimed, and the same of an owner that may be in the midst of its attempt · reset · endless, key · foreign, key, type ·
-- refused, reply.
-- Invariant: everything is checked before anything is written. A number is strictly above all that this node took before, and
-- not ahead of its clock, so that a node that forgot its counters goes on from its clock. The counter is written before the
-- lock: a number without its counter could be given twice. An owner that asks again gets the same answer and no longer lease.
local function try_acquire(k, a)
  local lock, fence, marker = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local owner, proposal, lease, lifetime, metadata = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]

  local since, wrong = in_service_since(marker)
  if not since then
    return wrong
  end
  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then
    return script_error(lock, held.err)
  end
  local now
  now, wrong = node_clock()
  if not now then
    return wrong
  end
  if held and string.sub(held, 1, 32) ~= owner then
    local left = redis.pcall('PTTL', lock)
    if refusal(left, 'PTTL') then
      return refusal(left, 'PTTL')
    elseif left < 0 then
      return 'endless ' .. lock
    end
    -- No attempt takes a quarter of a second.
    local begun = string.match(held, '^%x+ %d+ {"since":(%d+)')
    local how = begun and now / 16 - begun > 250 and 'taken ' or 'claimed '
    return how .. string.format('%.0f', left) .. ' ' .. (string.match(held, '^%x%x%x%x%x%x%x%x') or 'foreign')
  end

  local floor = 0
  if proposal ~= '-' then
    floor, wrong = floor_of(fence, since)
    if not floor then
      return wrong
    end
  end
  local told = string.format('granted %.0f %.0f ', now, floor)
  if held then
    return told .. (string.match(held, '^%x+ (%d+)') or '-')
  end

  local number = '-'
  if proposal ~= '-' and tonumber(proposal) > floor and tonumber(proposal) <= now then
    number = proposal
    local written = redis.pcall('SET', fence, number, 'PX', lifetime)
    if refusal(written, 'SET') then
      return refusal(written, 'SET')
    end
  end
  local entry = owner .. ' ' .. number .. string.format(' {"since":%.0f', math.floor(now / 16)) .. metadata
  local written = redis.pcall('SET', lock, entry, 'PX', lease)
  if refusal(written, 'SET') then
    return refusal(written, 'SET')
  end
  return told .. number
end
