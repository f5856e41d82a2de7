-- Takes a key for a session, or takes it once more, or says which session has it.
-- Keys: lock, counter. Arguments: session, level (32 hex digits), lease in ms, the most levels, the newest epoch that the session has lost (empty: none), metadata (what follows the first member of a JSON object).
-- Answers, in one text: granted, epoch · busy, ms left, start of the digest of the session that has it · deep, levels ·
-- endless, key · soon (as of `number_after`) · spent, key · foreign, key, type · refused, reply.
-- Invariant: everything is checked before anything is written. A level that asks again gets the same answer, counts once and
-- gets no longer lease; a further level keeps the epoch and never shortens the lease. A lock that the session has lost blocks
-- it until the lease ends. The counter is written before the lock, so that a holder has an epoch above all earlier ones.
local function try_acquire(k, a)
  local lock, fence = KEYS[k + 1], KEYS[k + 2]
  local session, level, lease = ARGV[a + 1], 'level:' .. ARGV[a + 2], ARGV[a + 3]
  local most, lost, metadata = ARGV[a + 4], ARGV[a + 5], ARGV[a + 6]

  local held = redis.pcall('HMGET', lock, 'owner', 'epoch', level)
  if held.err then
    return script_error(lock, held.err, 'HMGET')
  end
  local owner, epoch, taken = held[1], held[2], held[3]
  local fields = redis.pcall('HLEN', lock)
  if refusal(fields, 'HLEN') then
    return refusal(fields, 'HLEN')
  end
  if fields > 0 and not (owner and is_epoch(epoch)) then
    return 'foreign ' .. lock .. ' a hash of somebody else'
  end

  if fields > 0 then
    local left = redis.pcall('PTTL', lock)
    if refusal(left, 'PTTL') then
      return refusal(left, 'PTTL')
    end
    if owner ~= session or (lost ~= '' and tonumber(epoch) <= tonumber(lost)) then
      if left < 0 then
        return 'endless ' .. lock
      end
      return 'busy ' .. string.format('%.0f', left) .. ' ' .. string.sub(redis.sha1hex(owner), 1, 16)
    end
    if taken then
      return 'granted ' .. epoch
    end
    -- Beside the levels there are owner, epoch and metadata.
    if fields - 3 >= tonumber(most) then
      return 'deep ' .. string.format('%.0f', fields - 3)
    end
    local refused = refusal(redis.pcall('HSET', lock, level, ''), 'HSET')
    if not refused and left < tonumber(lease) then
      refused = refusal(redis.pcall('PEXPIRE', lock, lease), 'PEXPIRE')
      if refused then
        redis.pcall('HDEL', lock, level)
      end
    end
    if refused then
      return refused
    end
    return 'granted ' .. epoch
  end

  local number, why = draw(fence)
  if not number then
    return why
  end
  metadata = since() .. metadata
  local entry = redis.pcall('HSET', lock, 'owner', session, 'epoch', number, 'metadata', metadata, level, '')
  if refusal(entry, 'HSET') then
    return refusal(entry, 'HSET')
  end
  local refused = refusal(redis.pcall('PEXPIRE', lock, lease), 'PEXPIRE')
  if refused then
    -- Without a lease it would be held for ever.
    redis.pcall('DEL', lock)
    return refused
  end
  return 'granted ' .. number
end
