-- Reads who holds keys.
-- Keys: lock of the first, of the second, …
-- Answers, one list for each: held, tenure, metadata, ms left · free · foreign, key, type · refused, reply.
-- Changes nothing.
local function inspect(lock)
  local held = redis.pcall('HMGET', lock, 'owner', 'tenure', 'metadata')
  if held.err then
    if string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
      return { 'refused', held.err }
    end
    local kind = redis.pcall('TYPE', lock)
    return { 'foreign', lock, kind.ok or '' }
  end
  if held[1] and held[2] then
    return { 'held', held[2], held[3] or '', string.format('%.0f', redis.call('PTTL', lock)) }
  end
  if redis.call('HLEN', lock) > 0 then
    return { 'foreign', lock, 'a hash of somebody else' }
  end
  return { 'free' }
end

local answers = {}
for i, lock in ipairs(KEYS) do
  answers[i] = inspect(lock)
end
return answers
