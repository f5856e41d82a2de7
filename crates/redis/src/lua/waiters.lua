-- Counts who waits for keys.
-- Keys: queue of the first, of the second, …, as `queue.lua` keeps them.
-- Answers, one text for each: how many places it has · refused, reply.
-- Changes nothing. The fields `first`, `last`, `latest` and `woke` are no places.
local answers = {}
for i, line in ipairs(KEYS) do
  local fields = redis.pcall('HLEN', line)
  answers[i] = type(fields) == 'table' and 'refused ' .. fields.err .. ' (HLEN)' or string.format('%d', math.max(fields - 4, 0))
end
return answers
