-- Raises counters, and never lowers one.
-- Keys: fence of the first, of the second, … Arguments: lifetime in ms, and for each key its number.
-- Answers: raised · refused, reply.
local lifetime = ARGV[1]
for i, fence in ipairs(KEYS) do
  local number, last = ARGV[i + 1], redis.pcall('GET', fence)
  if type(last) == 'table' and string.sub(last.err, 1, 9) ~= 'WRONGTYPE' then
    return { 'refused', last.err .. ' (GET)' }
  end
  local known = type(last) == 'string' and tonumber(last) or 0
  if known < tonumber(number) then
    local written = redis.pcall('SET', fence, number, 'PX', lifetime)
    if written.err then
      return { 'refused', written.err .. ' (SET)' }
    end
  end
end
return { 'raised' }
