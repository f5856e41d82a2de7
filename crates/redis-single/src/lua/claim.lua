-- Grants a key to an owner, with the next number of its counter, or says who is in the way.
-- Keys: lock, fence. Arguments: owner (32 hex digits), lease in ms, lifetime of the counter in ms, and the metadata:
-- what follows the first member of a JSON object.
-- Answers, in one text: granted, number · busy, ms left · endless, key · spent, key · foreign, key, type · refused,
-- reply.
-- All is read and checked before anything is written. The counter is written before the lock, so that whoever holds
-- a lock has a number above all earlier ones; an owner who asks again is told the same and gets no longer lease.
local function claim(k, a)
  local lock, fence = KEYS[k + 1], KEYS[k + 2]
  local owner, lease, lifetime, metadata = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]

  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then
    return trouble(lock, held.err)
  end
  if held then
    if string.sub(held, 1, 32) == owner then
      return 'granted ' .. (string.match(held, '^%x+ (%d+)') or '')
    end
    local left = redis.call('PTTL', lock)
    if left < 0 then
      return 'endless ' .. lock
    end
    return 'busy ' .. string.format('%.0f', left)
  end

  local last = redis.pcall('GET', fence)
  if type(last) == 'table' then
    return trouble(fence, last.err)
  end
  if last and not string.match(last, '^%d+$') then
    return 'foreign ' .. fence .. ' not a number'
  end
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local number = math.max((last or 0) + 1, now)
  -- Above 2^53 adding one changes nothing.
  if number >= 9007199254740992 then
    return 'spent ' .. fence
  end

  local text = string.format('%.0f', number)
  local written = redis.pcall('SET', fence, text, 'PX', lifetime)
  if written.err then
    return 'refused ' .. written.err
  end
  local since = number == now and text or string.format('%.0f', now)
  local entry = owner .. ' ' .. text .. ' {"since":' .. since .. metadata
  written = redis.pcall('SET', lock, entry, 'PX', lease)
  if written.err then
    return 'refused ' .. written.err
  end
  return 'granted ' .. text
end
