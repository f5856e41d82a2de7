-- Prolongs leases, each only if its owner still holds the key under its epoch: a waiter asks with one owner id until it is
-- served, and a late claim of it may have begun another lease.
-- Keys: the locks. Argument: owner, epoch and lease in ms of each, in one text.
-- Answers held if all are held; otherwise for each: held · gone · refused, reply.
-- Invariant: never creates an entry, never shortens a lease (a renewal may come late, after a longer one), and what happens
-- to one key or reader does not touch another.
local function renew(lock, owner, epoch, lease)
  local field, ends, number, metadata = held_by(lock, owner)
  if number ~= epoch then
    return 'gone'
  end
  -- `PEXPIRE` in any case, and first: a server without memory left refuses `HSET` as the first write of a script.
  local longest = string.format('%d', math.max(call('PTTL', lock), tonumber(lease)))
  call('PEXPIRE', lock, longest)
  local longer = math.max(ends, clock() + lease)
  call('HSET', lock, field, entry_of(longer, owner, number, metadata))
  return 'held'
end

local answers, all_held = {}, true
for owner, epoch, lease in string.gmatch(ARGV[1], '(%x+) (%d+) (%d+) ') do
  local answer = alone(renew, KEYS[#answers + 1], owner, epoch, lease)
  answers[#answers + 1] = answer
  all_held = all_held and answer == 'held'
end
return all_held and 'held' or answers
