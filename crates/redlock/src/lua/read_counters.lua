-- Reads counters.
-- Keys: the fences.
-- Answers for each: counter, number · none · foreign, key, type · refused, reply.
-- Invariant: changes nothing.
local function read_counter(fence)
  local last = counter(fence)
  return last and 'counter ' .. last or 'none'
end

local answers = {}
for i, fence in ipairs(KEYS) do
  answers[i] = alone(read_counter, fence)
end
return answers
