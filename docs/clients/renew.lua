-- renew of leasehold-redis-single, written by `cargo run -p leasehold-book` from the files of crates/*/src/lua.
-- Prolongs the lease of a lock that its caller has found to be its own. Answers: held · refused, reply.
-- Never shortens a lease: a renewal may come late, after a longer one.
local function prolong(lock, lease)
  local left = redis.pcall('PTTL', lock)
  if type(left) == 'table' then
    return 'refused ' .. left.err .. ' (PTTL)'
  end
  if left >= tonumber(lease) then
    return 'held'
  end
  local prolonged = redis.pcall('PEXPIRE', lock, lease)
  return type(prolonged) == 'table' and 'refused ' .. prolonged.err .. ' (PEXPIRE)' or 'held'
end

-- Prolongs leases, each only if its owner still holds the key under its epoch: a waiter asks with one owner id until it is
-- served, and a late claim of it may have begun another lease.
-- Keys: the locks. Argument: owner, epoch and lease in ms of each, in one text.
-- Answers held if all are held; otherwise for each: held · gone · refused, reply.
-- Invariant: never creates an entry, never shortens a lease (a renewal may come late, after a longer one), and what happens
-- to one key does not touch another.
local function renew(lock, grant, lease)
  local held = redis.pcall('GET', lock)
  if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return 'refused ' .. held.err .. ' (GET)'
  end
  if type(held) ~= 'string' or string.sub(held, 1, #grant) ~= grant then
    return 'gone'
  end
  return prolong(lock, lease)
end

local answers, all_held = {}, true
for grant, lease in string.gmatch(ARGV[1], '(%x+ %d+ )(%d+)') do
  local answer = renew(KEYS[#answers + 1], grant, lease)
  answers[#answers + 1] = answer
  all_held = all_held and answer == 'held'
end
return all_held and 'held' or answers
