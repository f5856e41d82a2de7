-- Frees a key whoever holds it, or only one grant, leaves word for the holder, and signals.
-- Keys: lock, forced. Arguments: channel, how many ms beyond the lease the word is kept, and whom to take it from: an owner or
-- an epoch; empty for whoever holds it; and the channel on which all processes hear that a lock was taken from its holder, if there
-- is one.
-- Answers: held, entry, ms left (what it was), and what the server refused to do for those who wait ·
-- free (of the one that is meant) · foreign, key, type · refused, reply.
-- Never touches the counter. Where there is no room for the word, the holder learns that it lost the key, not why.
local lock, forced = KEYS[1], KEYS[2]
local channel, grace, only = ARGV[1], ARGV[2], ARGV[3]

local held = call('GET', lock)
local owner, epoch = string.match(held or '', '^(%x+) (%S+) ')
if not held or only ~= '' and only ~= owner and only ~= epoch then
  return 'free'
end
local left = call('PTTL', lock)
local kept = string.format('%.0f', math.max(left, 0) + tonumber(grace))
redis.pcall('SET', forced, string.sub(held, 1, 32), 'PX', kept)
call('DEL', lock)
local untold = refusal('PUBLISH', channel, '1')
if ARGV[4] then
  untold = refusal('PUBLISH', ARGV[4], lock)
end
return { 'held', held, string.format('%.0f', left), untold }
