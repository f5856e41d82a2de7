-- Gives back one level of a session; with the last level, frees the key and notifies waiters.
-- Keys: lock. Arguments: session, level, epoch (empty: not known), channel.
-- Answers, in one text: held (until now), and what the server refused to do for the waiters · gone · refused, reply.
-- Invariant: a level that was given back, or never taken, is gone, so nothing is counted twice. The counter stays. A server
-- that refuses to publish still releases.
local function release(k, a)
  local lock = KEYS[k + 1]
  local session, level, epoch, channel = ARGV[a + 1], 'level:' .. ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]

  local held = read('HMGET', lock, 'owner', 'epoch', level)
  if not held or held[1] ~= session or not held[3] or (epoch ~= '' and held[2] ~= epoch) then
    return 'gone'
  end
  -- Beside the levels there are owner, epoch and metadata.
  if call('HLEN', lock) > 4 then
    call('HDEL', lock, level)
    return 'held'
  end
  call('DEL', lock)
  local untold = refusal('PUBLISH', channel, '1')
  return untold and 'held ' .. untold or 'held'
end
