-- Reads counters.
-- Keys: the fences.
-- Answers, one list for each: counter, number · none · foreign, key, type · refused, reply.
-- Invariant: changes nothing.
local function read(fence)
  local last = redis.pcall('GET', fence)
  if not last then
    return { 'none' }
  end
  if type(last) == 'string' then
    local wrong = no_counter(last)
    return wrong and { 'foreign', fence, wrong } or { 'counter', last }
  end
  if string.sub(last.err, 1, 9) ~= 'WRONGTYPE' then
    return { 'refused', last.err .. ' (GET)' }
  end
  local kind = redis.pcall('TYPE', fence)
  return { 'foreign', fence, kind.ok or '' }
end

local answers = {}
for i, fence in ipairs(KEYS) do
  answers[i] = read(fence)
end
return answers
