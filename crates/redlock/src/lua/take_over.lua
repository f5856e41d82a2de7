-- Gives a lock on this node to a new owner, if the old owner still has it here, and prolongs its lease.
-- Keys: lock, forced. Arguments: old owner, its epoch or -, new owner, lease in ms.
-- Answers: held · gone · forced · refused, reply. Without keys: loaded. Asked again with the same new owner, it answers the
-- same. A node that was not asked in the second round has no epoch.
-- Invariant: of several new owners that try one succeeds here; nothing else of the entry changes; never creates an entry,
-- and never shortens a lease.
if #KEYS == 0 then
  return { 'loaded' }
end
local lock, forced = KEYS[1], KEYS[2]
local owner, number, new_owner, lease = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local has, of, rest = string.match(read('GET', lock) or '', '^(%x+) (%S+)( .*)$')
if (has ~= owner and has ~= new_owner) or (of ~= number and of ~= '-') then
  return redis.pcall('GET', forced) == owner and 'forced' or 'gone'
end
return rewrite(lock, new_owner .. ' ' .. of .. rest, lease)
