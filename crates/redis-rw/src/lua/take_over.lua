-- Gives a grant to a new owner, if the old owner still has it under its epoch, and prolongs its lease.
-- Keys: lock. Arguments: old owner, its epoch or -, new owner, lease in ms.
-- Answers: held · gone · refused, reply. Asked again with the same new owner, it answers the same.
-- Invariant: of several new owners that try one succeeds; nothing else of the entry changes; never creates an entry, and
-- never shortens a lease.
local lock = KEYS[1]
local owner, epoch, new_owner, lease = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

for _, of in ipairs({ new_owner, owner }) do
  local field, ends, number, metadata = held_by(lock, of)
  if number == epoch then
    local longer, into = math.max(ends, clock() + lease), field == 'writer' and field or new_owner
    call('HSET', lock, into, entry_of(longer, new_owner, number, metadata))
    if field ~= into then
      call('HDEL', lock, field)
    end
    return prolong(lock, lease)
  end
end
return 'gone'
