-- Second round: writes the epoch of an attempt where the key is still its own and every number so far is smaller.
-- Keys: lock, fence, marker. Arguments: owner, epoch, lifetime of the counter in ms.
-- Answers, in one text: fenced · gone · conflict, number · reset · foreign, key, type · refused, reply.
-- Invariant: strictly smaller. A grant that arrives late at a node, after another holder came and went there, would otherwise
-- confirm the epoch of that holder. Asked again with the same epoch, it confirms again.
local function confirm(k, a)
  local lock, fence, marker = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local owner, number, lifetime = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]

  local mark = redis.pcall('GET', marker)
  if refusal(mark, 'GET') then
    return refusal(mark, 'GET')
  end
  if type(mark) ~= 'string' or string.sub(mark, 1, 3) ~= 'up ' then
    return 'reset'
  end
  local held = redis.pcall('GET', lock)
  if refusal(held, 'GET') then
    return refusal(held, 'GET')
  end
  if type(held) ~= 'string' or string.sub(held, 1, 32) ~= owner then
    return 'gone'
  end
  if string.match(held, '^%x+ (%d+)') == number then
    return 'fenced'
  end
  local last = redis.pcall('GET', fence)
  if type(last) == 'table' then
    return script_error(fence, last.err)
  end
  local wrong = last and no_counter(last)
  if wrong then
    return 'foreign ' .. fence .. ' ' .. wrong
  end
  if last and tonumber(last) >= tonumber(number) then
    return 'conflict ' .. last
  end

  local written = redis.pcall('SET', fence, number, 'PX', lifetime)
  if refusal(written, 'SET') then
    return refusal(written, 'SET')
  end
  local rest = string.match(held, '^%x+ %S+( .*)$') or ' {}'
  written = redis.pcall('SET', lock, owner .. ' ' .. number .. rest, 'KEEPTTL')
  if refusal(written, 'SET') then
    return refusal(written, 'SET')
  end
  return 'fenced'
end
