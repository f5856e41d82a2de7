-- Second round: writes the number of an attempt where the key is still its own and every number so far is smaller.
-- Keys: lock, fence, marker. Arguments: owner, number, how far it may be ahead of this node's clock, lifetime of the counter in
-- ms.
-- Answers, in one text: fenced · gone · conflict, number · early · reset · foreign, key, type · refused, reply.
-- Invariant: strictly smaller. A grant that arrives late at a node, after another holder came and went there, would otherwise
-- confirm the number of that holder. Asked again with the same number, it confirms again.
local function confirm(k, a)
  local lock, fence, marker = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local owner, number, ahead, lifetime = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]

  local since = in_service_since(marker)
  local held = read('GET', lock)
  if not held or string.sub(held, 1, 32) ~= owner then
    return 'gone'
  end
  if string.match(held, '^%x+ (%d+)') == number then
    return 'fenced'
  end
  local floor = floor_of(fence, nil, since)
  if floor >= tonumber(number) then
    return string.format('conflict %.0f', floor)
  end
  if tonumber(number) > node_clock() + ahead then
    return 'early'
  end

  call('SET', fence, number, 'PX', lifetime)
  local rest = string.match(held, '^%x+ %S+( .*)$') or ' {}'
  call('SET', lock, owner .. ' ' .. number .. rest, 'KEEPTTL')
  return 'fenced'
end
