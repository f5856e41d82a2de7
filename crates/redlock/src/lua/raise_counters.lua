-- Raises counters.
-- Keys: the fences. Arguments: lifetime in ms, and the number for each key.
-- Answers: raised · foreign, key, type · refused, reply.
-- Invariant: everything is checked before anything is written, and no counter is lowered.
local lifetime = ARGV[1]
local known = {}
for i, fence in ipairs(KEYS) do
  local last = redis.pcall('GET', fence)
  if type(last) == 'table' then
    if string.sub(last.err, 1, 9) ~= 'WRONGTYPE' then
      return { 'refused', last.err .. ' (GET)' }
    end
    local kind = redis.pcall('TYPE', fence)
    return { 'foreign', fence, kind.ok or '' }
  end
  local wrong = last and no_counter(last)
  if wrong then
    return { 'foreign', fence, wrong }
  end
  known[i] = last and tonumber(last) or 0
end
for i, fence in ipairs(KEYS) do
  local number = ARGV[i + 1]
  if known[i] < tonumber(number) then
    local written = redis.pcall('SET', fence, number, 'PX', lifetime)
    if written.err then
      return { 'refused', written.err .. ' (SET)' }
    end
  end
end
return { 'raised' }
