-- Reads who holds keys. Keys: the locks. Answers as `holders_of`, for each.
local answers = {}
for i, lock in ipairs(KEYS) do
  answers[i] = holders_of(lock)
end
return answers
