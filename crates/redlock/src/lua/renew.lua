-- Prolongs leases on this node, each only if its owner still holds the key here.
-- Keys: lock and forced of each. Arguments: owner and lease in ms of each.
-- Answers, one for each: held · gone · forced · refused and the reply. Without keys: loaded.
-- Invariant: never creates an entry (a node that lost it does not get it back), and never shortens a lease (a renewal may
-- come late, after a longer one).
if #KEYS == 0 then
  return { 'loaded' }
end
local function renew(lock, forced, owner, lease)
  local held = redis.pcall('GET', lock)
  if type(held) == 'string' and string.sub(held, 1, 32) == owner then
    return prolong(lock, lease)
  end
  if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return 'refused ' .. held.err .. ' (GET)'
  end
  return redis.pcall('GET', forced) == owner and 'forced' or 'gone'
end

local answers = {}
for i = 1, #KEYS, 2 do
  answers[#answers + 1] = renew(KEYS[i], KEYS[i + 1], ARGV[i], ARGV[i + 1])
end
return answers
