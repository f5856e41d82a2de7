-- Counts who waits for keys.
-- Keys: queue of the first, of the second, …, as `queue.lua` keeps them.
-- Answers, one text for each: how many places it has · foreign, key, type · refused, reply.
-- Changes nothing. The fields `first`, `last`, `latest` and `woke` are no places.
local function waiters(line)
  return string.format('%d', math.max(call('HLEN', line) - 4, 0))
end

local answers = {}
for i, line in ipairs(KEYS) do
  answers[i] = alone(waiters, line)
end
return answers
