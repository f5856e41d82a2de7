-- What the steps of this node have in common. Numbers and clocks are epochs: 1/16 ms since 1970.

-- From 2^47 - 1 on, in the year 2248, no number above it makes a token.
local END = 140737488355327

local moment

-- The clock of this node: the same for a whole script, as in Redis itself. Raises what is wrong.
local function node_clock()
  if not moment then
    local time = call('TIME')
    local now = time[1] * 16000 + math.floor(time[2] * 2 / 125)
    if now >= END then
      raise('refused the clock is beyond the year 2248')
    end
    moment = now
  end
  return moment
end

-- The text of a counter, if there is one. `last` is the text, if it is known and a text. Raises what is wrong.
local function counter(fence, last)
  last = last or call('GET', fence)
  if last and (#last > 15 or not string.match(last, '^%d+$')) then
    raise('foreign ' .. fence .. ' not a counter')
  elseif last and tonumber(last) >= END then
    raise('foreign ' .. fence .. ' a counter beyond the year 2248')
  end
  return last
end

-- The clock of this node when it went into service, by its marker: what it gave before, and may have forgotten, is not above.
-- Raises what is wrong: a node without a marker in service has lost what it promised. `mark` is the text of the marker, if it is
-- known and a text.
local function in_service_since(marker, mark)
  mark = mark or call('GET', marker)
  local since = mark and string.match(mark, '^2 up %x+ (%d+)$')
  if not since or #since > 15 or tonumber(since) >= END then
    raise('reset')
  end
  return tonumber(since)
end

-- The number that this node takes only numbers above. `last` is the text of the counter, if it is known and a text.
local function floor_of(fence, last, since)
  return math.max(tonumber(counter(fence, last) or 0), since)
end
