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

