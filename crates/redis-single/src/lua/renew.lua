-- Prolongs leases, each only if its owner still holds the key, by this grant: a waiter asks with one owner until it is
-- served, and a claim of it that comes late may have begun another lease.
-- Keys: lock of the first, of the second, … Argument: owner, number and lease in ms of the first, of the second, …, in
-- one text.
-- Answers held if all are; else for each: held · gone · refused, reply.
-- Never creates an entry: what is gone stays gone. Never shortens a lease: a renewal may come late, after a longer one.
-- One key does not touch another.
local function renew(lock, grant, lease)
  local held = redis.pcall('GET', lock)
  if type(held) == 'table' and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return 'refused ' .. held.err .. ' (GET)'
  end
  if type(held) ~= 'string' or string.sub(held, 1, #grant) ~= grant then
    return 'gone'
  end
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

local answers, all_held = {}, true
for grant, lease in string.gmatch(ARGV[1], '(%x+ %d+ )(%d+)') do
  local answer = renew(KEYS[#answers + 1], grant, lease)
  answers[#answers + 1] = answer
  all_held = all_held and answer == 'held'
end
return all_held and 'held' or answers
