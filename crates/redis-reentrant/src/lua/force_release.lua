-- Frees a key with all its levels whoever holds it, or only a lease with one epoch, leaves a note for the holder, and notifies
-- waiters.
-- Keys: lock, forced. Arguments: channel, how many ms beyond the lease the note is kept, that epoch, or nothing for any.
-- Answers: held, epoch, metadata, ms left (as it was), and what the server refused to do for the waiters ·
-- free (of the one that is meant) · foreign, key, type · refused, reply.
-- Invariant: the counter stays. Where there is no room for the note, the holder learns that it lost the key, not why.
local lock, forced = KEYS[1], KEYS[2]
local channel, grace, only = ARGV[1], ARGV[2], ARGV[3]

local owner, epoch, metadata = holder(lock, 'metadata')
if not owner or only ~= '' and only ~= epoch then
  return 'free'
end
local was = told(lock, epoch, metadata)
local kept = string.format('%.0f', math.max(was[4], 0) + tonumber(grace))
redis.pcall('SET', forced, epoch .. ' ' .. owner, 'PX', kept)
call('DEL', lock)
was[5] = refusal('PUBLISH', channel, '1')
return was
