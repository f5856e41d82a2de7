-- Reads counters.
-- Keys: fence of the first, of the second, …
-- Answers, one for each: the number, or nothing if there is none.
local answers = {}
for i, fence in ipairs(KEYS) do
  local last = redis.pcall('GET', fence)
  answers[i] = type(last) == 'string' and last or ''
end
return answers
