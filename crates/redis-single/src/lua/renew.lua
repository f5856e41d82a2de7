-- Prolongs leases, each only if its owner still holds the key under its epoch: a waiter asks with one owner id until it is
-- served, and a late claim of it may have begun another lease.
-- Keys: the locks. Argument: owner, epoch and lease in ms of each, in one text.
-- Answers held if all are held; otherwise for each: held · gone · refused, reply.
-- Invariant: never creates an entry, never shortens a lease (a renewal may come late, after a longer one), and what happens
-- to one key does not touch another.
local function renew(lock, grant, lease)
  local held = read('GET', lock)
  if not held or string.sub(held, 1, #grant) ~= grant then
    return 'gone'
  end
  return prolong(lock, lease)
end

local answers, all_held = {}, true
for grant, lease in string.gmatch(ARGV[1], '(%x+ %d+ )(%d+)') do
  local answer = alone(renew, KEYS[#answers + 1], grant, lease)
  answers[#answers + 1] = answer
  all_held = all_held and answer == 'held'
end
return all_held and 'held' or answers
