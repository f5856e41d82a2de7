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

