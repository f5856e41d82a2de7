-- What the steps of this node have in common. Numbers and clocks are epochs: 1/16 ms since 1970.

-- From 2^47 - 1 on, in the year 2248, no number above it makes a token.
local END = 140737488355327

-- What is wrong with the text of a counter; nothing if it is a counter.
local function no_counter(last)
  if #last > 15 or not string.match(last, '^%d+$') then
    return 'not a counter'
  end
  if tonumber(last) >= END then
    return 'a counter beyond the year 2248'
  end
end

local moment

-- The clock of this node: the same for a whole script, as in Redis itself. Or nothing, and what is wrong.
local function node_clock()
  if not moment then
    local time = redis.pcall('TIME')
    if time.err then
      return nil, 'refused ' .. time.err .. ' (TIME)'
    end
    local now = time[1] * 16000 + math.floor(time[2] * 2 / 125)
    if now >= END then
      return nil, 'refused the clock is beyond the year 2248'
    end
    moment = now
  end
  return moment
end

-- The clock of this node when it went into service, by its marker: what it gave before, and may have forgotten, is not above.
-- Or nothing, and what is wrong: a node without a marker in service has lost what it promised. `mark` is the text of the marker,
-- if it is known and a text.
local function in_service_since(marker, mark)
  mark = mark or redis.pcall('GET', marker)
  if type(mark) == 'table' then
    return nil, script_error(marker, mark.err)
  end
  local since = mark and string.match(mark, '^2 up %x+ (%d+)$')
  if not since or no_counter(since) then
    return nil, 'reset'
  end
  return tonumber(since)
end

-- The number that this node takes only numbers above. Or nothing, and what is wrong. `last` is the text of the counter, if it is
-- known and a text.
local function floor_of(fence, last, since)
  last = last or redis.pcall('GET', fence)
  if type(last) == 'table' then
    return nil, script_error(fence, last.err)
  end
  local wrong = last and no_counter(last)
  if wrong then
    return nil, 'foreign ' .. fence .. ' ' .. wrong
  end
  return math.max(last and tonumber(last) or 0, since)
end
