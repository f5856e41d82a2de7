-- Prolongs the lease of a lock that its caller has found to be its own. Answers: held.
-- Never shortens a lease: a renewal may come late, after a longer one.
local function prolong(lock, lease)
  local left = call('PTTL', lock)
  if left < tonumber(lease) then
    call('PEXPIRE', lock, lease)
  end
  return 'held'
end

