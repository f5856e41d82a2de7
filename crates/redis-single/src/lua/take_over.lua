-- Gives a lock to a new owner, if the old owner still has it under its epoch, and prolongs its lease.
-- Keys: lock. Arguments: old owner, its epoch or -, new owner, lease in ms.
-- Answers: held · gone · refused, reply. Asked again with the same new owner, it answers the same.
-- Invariant: of several new owners that try one succeeds; nothing else of the entry changes; never creates an entry, and
-- never shortens a lease.
local lock = KEYS[1]
local owner, number, new_owner, lease = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local has, of, rest = string.match(read('GET', lock) or '', '^(%x+) (%S+)( .*)$')
if of ~= number or (has ~= owner and has ~= new_owner) then
  return 'gone'
end
return rewrite(lock, new_owner .. ' ' .. number .. rest, lease)
