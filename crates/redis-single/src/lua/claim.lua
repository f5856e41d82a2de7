-- Grants a key to an owner, or says who is in the way.
-- Keys: lock, fence, line. Arguments: owner (32 hex digits), lease in ms, lifetime of the counter in ms, metadata (what
-- follows the first member of a JSON object), inbox (see `line.lua`; empty: takes no place in line).
-- Answers, in one text: granted, number · busy, ms left · queued, ms left, number of who has it or - · endless, key ·
-- spent, key · foreign, key, type · refused, reply.
-- An owner who asks again is told the same and gets no longer lease. A key that is free while others wait goes to the
-- first of them.
local function claim(k, a)
  local lock, fence, line = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3]
  local owner, lease, lifetime, metadata, inbox = ARGV[a + 1], ARGV[a + 2], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5]

  local held = redis.pcall('GET', lock)
  if type(held) == 'table' then
    return trouble(lock, held.err)
  end
  if held and string.sub(held, 1, 32) == owner then
    return 'granted ' .. (string.match(held, '^%x+ (%d+)') or '')
  end
  local number = held and string.match(held, '^%x+ (%d+)')
  if not held then
    local served, drawn = serve(lock, fence, line, owner)
    if not served or served == owner then
      return grant(lock, fence, owner, lease, lifetime, metadata)
    end
    number = drawn
  end

  local left = redis.call('PTTL', lock)
  if left < 0 then
    return 'endless ' .. lock
  end
  if inbox ~= '' and queue(line, owner, inbox, lease, lifetime, metadata) then
    return string.format('queued %d %s', left, number or '-')
  end
  return string.format('busy %d', left)
end
