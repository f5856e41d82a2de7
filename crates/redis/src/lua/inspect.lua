-- Reads who holds keys.
-- Keys: lock of the first, of the second, …
-- Answers, one list for each: held, entry, ms left · free · foreign, key, type · refused, reply.
-- Changes nothing.
local function inspect(lock)
  local held = redis.pcall('GET', lock)
  if not held then
    return { 'free' }
  end
  if type(held) == 'string' then
    local left = redis.pcall('PTTL', lock)
    return type(left) == 'table' and { 'refused', left.err .. ' (PTTL)' } or { 'held', held, string.format('%.0f', left) }
  end
  if string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return { 'refused', held.err .. ' (GET)' }
  end
  local kind = redis.pcall('TYPE', lock)
  return { 'foreign', lock, kind.ok or '' }
end

local answers = {}
for i, lock in ipairs(KEYS) do
  answers[i] = inspect(lock)
end
return answers
