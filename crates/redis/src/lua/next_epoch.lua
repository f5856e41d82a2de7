local ticks, moment

-- The server's clock in 1/16 ms since 1970, as epochs count: the same for a whole script, as in Redis itself.
local function clock_ticks()
  if not ticks then
    local time = call('TIME')
    ticks = time[1] * 16000 + math.floor(time[2] * 2 / 125)
  end
  return ticks
end

-- The server's clock in ms since 1970.
local function clock()
  return math.floor(clock_ticks() / 16)
end

-- The first member of an entry's metadata, without its closing brace.
local function since()
  moment = moment or string.format('{"since":%d', clock())
  return moment
end

-- The number after the text of a counter (false: there is none), by the rule of `FencingToken::next_epoch`, as a text; or false and
-- why there is none: soon (it would be more than a millisecond ahead of the clock, and what a server forgets would be given again) ·
-- spent, key · foreign, key, type.
-- Grants alone do not take a counter more than a second ahead: the clock was set back, and the count goes on.
-- `regardless` of the clock there is a number in any case: for the step from writer to reader, which no claim can repeat.
local function number_after(fence, last, regardless)
  local stored = last and string.match(last, '^epoch (%d+)$')
  if last and not stored then
    return false, 'foreign ' .. fence .. ' not a counter'
  end
  local now = clock_ticks()
  local most = now + 16
  local number = stored and math.max(stored + 1, now) or most
  -- No token is made of more: `FencingToken::MAX_EPOCH`.
  if number > 140737488355327 then
    return false, 'spent ' .. fence
  elseif number > most and number <= most + 16000 and not regardless then
    return false, 'soon'
  end
  return string.format('%d', number)
end

-- Draws the next number of a counter, which is above `least` if that is given, whatever the clock says; nothing if there is none so
-- soon. Raises why there is none at all, before anything is written.
local function draw(fence, least)
  local last = call('GET', fence)
  local number, why = number_after(fence, last or least and 'epoch ' .. least, least)
  if number then
    call('SET', fence, 'epoch ' .. number)
  elseif why ~= 'soon' then
    raise(why)
  end
  return number
end

