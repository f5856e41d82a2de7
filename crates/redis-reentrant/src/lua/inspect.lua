-- Reads who holds keys. Keys: the locks. Answers for each, as `told`; or: foreign, key, type · refused, reply. Changes nothing.
local function inspect(lock)
  local _, epoch, metadata = holder(lock, 'metadata')
  return told(lock, epoch, metadata)
end

local answers = {}
for i, lock in ipairs(KEYS) do
  answers[i] = alone(inspect, lock)
end
return answers
