local ticks, moment

-- The server's clock in 1/16 ms since 1970, as epochs count: the same for a whole script, as in Redis itself.
local function clock_ticks()
  if not ticks then
    local time = redis.pcall('TIME')
    if time.err then
      error(time.err .. ' (TIME)', 0)
    end
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

local next_epoch

-- Draws the next number of a counter that was not read yet. Answers as `next_epoch`.
local function read_and_count(fence, lifetime)
  local last = redis.pcall('GET', fence)
  if type(last) == 'table' then
    return false, script_error(fence, last.err)
  end
  return next_epoch(fence, last, lifetime)
end

-- Draws the next number of a counter, whose text is `last` (false if there is none), by the rule of `FencingToken::next_epoch`.
-- Answers the number as a text; or false and why there is none: soon (it would be more than a millisecond ahead of the clock, and
-- what a server forgets would be given again) · spent, key · foreign, key, type · refused, reply.
-- Grants alone do not take a counter more than a second ahead: the clock was set back, and the count goes on.
-- `regardless` of the clock there is a number in any case: for the step from writer to reader, which no claim can repeat.
-- All is checked before anything is written.
function next_epoch(fence, last, lifetime, regardless)
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
  local text, written = string.format('%d', number), nil
  if stored then
    written = redis.pcall('SET', fence, 'epoch ' .. text, 'PX', lifetime)
  else
    written = redis.pcall('SET', fence, 'epoch ' .. text, 'PX', lifetime, 'NX')
  end
  if not written then
    -- Of another type, which `MGET` does not show, or made by the same batch.
    return read_and_count(fence, lifetime)
  elseif written.err then
    return false, 'refused ' .. written.err .. ' (SET)'
  end
  return text
end

