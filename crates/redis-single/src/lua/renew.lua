-- Prolongs leases, each only if its owner still holds the key.
-- Keys: lock of the first, of the second, … Arguments: owner and lease in ms of the first, of the second, …
-- Answers, one for each: held · gone · refused and the reply.
-- Never creates an entry: what is gone stays gone. One key does not touch another.
local function renew(lock, owner, lease)
  local held = redis.pcall('GET', lock)
  if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return 'refused ' .. held.err
  end
  if type(held) ~= 'string' or string.sub(held, 1, 32) ~= owner then
    return 'gone'
  end
  local prolonged = redis.pcall('PEXPIRE', lock, lease)
  return type(prolonged) == 'table' and 'refused ' .. prolonged.err or 'held'
end

local answers = {}
for i, lock in ipairs(KEYS) do
  answers[i] = renew(lock, ARGV[2 * i - 1], ARGV[2 * i])
end
return answers
