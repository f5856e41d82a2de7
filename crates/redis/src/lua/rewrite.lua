-- Writes a new text into the entry of a lock that its caller has found to be its own, and prolongs its lease. Answers: held ·
-- refused, reply.
-- Never shortens a lease.
local function rewrite(lock, entry, lease)
  local left = redis.pcall('PTTL', lock)
  if type(left) == 'table' then
    return { 'refused', left.err .. ' (PTTL)' }
  end
  local longer = string.format('%.0f', math.max(left, tonumber(lease)))
  local written = redis.pcall('SET', lock, entry, 'PX', longer)
  if type(written) == 'table' and written.err then
    return { 'refused', written.err .. ' (SET)' }
  end
  return { 'held' }
end

