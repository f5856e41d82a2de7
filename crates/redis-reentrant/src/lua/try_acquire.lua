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

  local owner, epoch, taken, fields = holder(lock, level)
  if owner then
    local left = call('PTTL', lock)
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
    call('HSET', lock, level, '')
    local refused = left < tonumber(lease) and refusal('PEXPIRE', lock, lease)
    if refused then
      redis.pcall('HDEL', lock, level)
    end
    return refused or 'granted ' .. epoch
  end

  local number = draw(fence)
  if not number then
    return 'soon'
  end
  call('HSET', lock, 'owner', session, 'epoch', number, 'metadata', since() .. metadata, level, '')
  local refused = refusal('PEXPIRE', lock, lease)
  if refused then
    -- Without a lease it would be held for ever.
    redis.pcall('DEL', lock)
  end
  return refused or 'granted ' .. number
end

