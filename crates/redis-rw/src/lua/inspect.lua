-- Reads who holds keys. Keys: the locks. Answers as `holders_of`, for each · foreign, key, type · refused, reply.
local answers = {}
for i, lock in ipairs(KEYS) do
  answers[i] = alone(holders_of, lock)
end
return answers
