-- Raises counters.
-- Keys: the fences. Arguments: lifetime in ms, and the number for each key.
-- Answers: raised · foreign, key, type · refused, reply.
-- Invariant: everything is checked before anything is written, and no counter is lowered.
local lifetime = ARGV[1]
local known = {}
for i, fence in ipairs(KEYS) do
  known[i] = tonumber(counter(fence) or 0)
end
for i, fence in ipairs(KEYS) do
  local number = ARGV[i + 1]
  if known[i] < tonumber(number) then
    call('SET', fence, number, 'PX', lifetime)
  end
end
return 'raised'
