-- Reads who holds keys. Keys: the locks. Answers as `holder_of`, for each · foreign, key, type · refused, reply. Changes nothing.
local answers = {}
for i, lock in ipairs(KEYS) do
  answers[i] = alone(holder_of, lock)
end
return answers
