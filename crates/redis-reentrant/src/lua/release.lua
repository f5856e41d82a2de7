-- Gives back one level of a session; with the last one, frees the key and signals that.
-- Keys: lock. Arguments: session, level, tenure (empty: not known), channel.
-- Answers, in one text: held (until now) · gone · refused, reply.
-- A level that was given back, or never taken, is gone, so nothing is counted twice. Never touches the counter. A
-- server that does not let us publish does not keep us from releasing.
local function release(k, a)
  local lock = KEYS[k + 1]
  local session, level, tenure, channel = ARGV[a + 1], 'level:' .. ARGV[a + 2], ARGV[a + 3], ARGV[a + 4]

  local held = redis.pcall('HMGET', lock, 'owner', 'tenure', level)
  if held.err and string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
    return 'refused ' .. held.err
  end
  if held.err or held[1] ~= session or not held[3] or (tenure ~= '' and held[2] ~= tenure) then
    return 'gone'
  end
  -- Beside the levels there are owner, tenure and metadata.
  local is_last = redis.call('HLEN', lock) <= 4
  local deleted = is_last and redis.pcall('DEL', lock) or redis.pcall('HDEL', lock, level)
  if type(deleted) == 'table' then
    return 'refused ' .. deleted.err
  end
  if is_last then
    redis.pcall('PUBLISH', channel, '1')
  end
  return 'held'
end
