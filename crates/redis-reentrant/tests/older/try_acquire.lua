-- The claim of the version whose counters are bare numbers, in ms; for a test.
-- The answer for a command that Redis refused with this reply: foreign, key, type · refused, reply. With its name, because
-- Redis 7.0 does not say which command a user may not run.
local function script_error(key, reply, command)
  if string.sub(reply, 1, 9) ~= 'WRONGTYPE' then
    return 'refused ' .. reply .. ' (' .. (command or 'GET') .. ')'
  end
  local kind = redis.pcall('TYPE', key)
  return 'foreign ' .. key .. ' ' .. (kind.ok or '')
end

-- What to answer to a command that the server refused; nothing if it did not. What somebody else wrote under our name is
-- none of ours, and a refusal is not "nothing there".
local function refusal(reply, command)
  if type(reply) == 'table' and reply.err and string.sub(reply.err, 1, 9) ~= 'WRONGTYPE' then
    return 'refused ' .. reply.err .. ' (' .. command .. ')'
  end
end

local moment

-- Now, in ms: the same for a whole script, as in Redis itself.
local function clock()
  if not moment then
    local time = redis.pcall('TIME')
    if time.err then
      error(time.err .. ' (TIME)', 0)
    end
    moment = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  return moment
end

-- Draws the next number of a counter: above all earlier ones, and not below the clock.
-- Answers the number and now, as texts; or false and what is wrong: spent, key · foreign, key, type · refused, reply.
-- All is read and checked before anything is written.
local function next_epoch(fence, lifetime)
  local last = redis.pcall('GET', fence)
  if type(last) == 'table' then
    return false, script_error(fence, last.err)
  end
  if last and not string.match(last, '^%d+$') then
    return false, 'foreign ' .. fence .. ' not a number'
  end
  local now = clock()
  local number = math.max((last or 0) + 1, now)
  -- Above 2^53 adding one changes nothing.
  if number >= 9007199254740992 then
    return false, 'spent ' .. fence
  end
  local text = string.format('%d', number)
  local written = redis.pcall('SET', fence, text, 'PX', lifetime)
  if written.err then
    return false, 'refused ' .. written.err .. ' (SET)'
  end
  return text, number == now and text or string.format('%d', now)
end

-- Whether a text is an epoch that a counter gives. An entry with another number was written by somebody else.
local function is_epoch(epoch)
  return epoch and string.match(epoch, '^%d+$') and tonumber(epoch) < 9007199254740992
end

-- Takes a key for a session, or takes it once more, or says which session has it.
-- Keys: lock, fence. Arguments: session, level (32 hex digits), lease in ms, lifetime of the counter in ms, the most levels,
-- the newest epoch that the session has lost (empty: none), metadata (what follows the first member of a JSON object).
-- Answers, in one text: granted, epoch · busy, ms left, start of the digest of the session that has it · deep, levels ·
-- endless, key · spent, key · foreign, key, type · refused, reply.
-- Invariant: everything is checked before anything is written. A level that asks again gets the same answer, counts once and
-- gets no longer lease; a further level keeps the epoch and never shortens the lease. A lock that the session has lost blocks
-- it until the lease ends. The counter is written before the lock, so that a holder has an epoch above all earlier ones.
local function try_acquire(k, a)
  local lock, fence = KEYS[k + 1], KEYS[k + 2]
  local session, level, lease, lifetime = ARGV[a + 1], 'level:' .. ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]
  local most, lost, metadata = ARGV[a + 5], ARGV[a + 6], ARGV[a + 7]

  local held = redis.pcall('HMGET', lock, 'owner', 'tenure', level)
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

  local number, now = next_epoch(fence, lifetime)
  if not number then
    return now
  end
  metadata = '{"since":' .. now .. metadata
  local entry = redis.pcall('HSET', lock, 'owner', session, 'tenure', number, 'metadata', metadata, level, '')
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

return try_acquire(0, 0)
