-- Reads who holds keys.
-- Keys: lock of the first, of the second, …
-- Answers for each: held, entry, ms left · free · foreign, key, type · refused, reply.
-- Changes nothing.
local function inspect(lock)
  local held = call('GET', lock)
  return held and { 'held', held, string.format('%.0f', call('PTTL', lock)) } or 'free'
end

local answers = {}
for i, lock in ipairs(KEYS) do
  answers[i] = alone(inspect, lock)
end
return answers
