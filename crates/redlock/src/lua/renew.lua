-- Prolongs leases on this node, each only if its owner still holds the key here.
-- Keys: lock and forced of each. Arguments: owner and lease in ms of each.
-- Answers, one for each: held · gone · forced · refused and the reply. Without keys: loaded.
-- Invariant: never creates an entry (a node that lost it does not get it back), and never shortens a lease (a renewal may
-- come late, after a longer one).
if #KEYS == 0 then
  return { 'loaded' }
end
local function renew(lock, forced, owner, lease)
  local held = read('GET', lock)
  if held and string.sub(held, 1, 32) == owner then
    return prolong(lock, lease)
  end
  return redis.pcall('GET', forced) == owner and 'forced' or 'gone'
end

local answers = {}
for i = 1, #KEYS, 2 do
  answers[#answers + 1] = alone(renew, KEYS[i], KEYS[i + 1], ARGV[i], ARGV[i + 1])
end
return answers
