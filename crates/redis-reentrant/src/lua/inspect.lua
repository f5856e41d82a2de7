-- Reads who holds keys.
-- Keys: the locks.
-- Answers, one list for each: held, epoch, metadata, ms left · free · foreign, key, type · refused, reply.
-- Invariant: changes nothing.
local function inspect(lock)
  local held = redis.pcall('HMGET', lock, 'owner', 'epoch', 'metadata')
  if held.err then
    if string.sub(held.err, 1, 9) ~= 'WRONGTYPE' then
      return { 'refused', held.err .. ' (HMGET)' }
    end
    local kind = redis.pcall('TYPE', lock)
    return { 'foreign', lock, kind.ok or '' }
  end
  if held[1] and is_epoch(held[2]) then
    local left = redis.pcall('PTTL', lock)
    if type(left) == 'table' then
      return { 'refused', left.err .. ' (PTTL)' }
    end
    return { 'held', held[2], held[3] or '', string.format('%.0f', left) }
  end
  local fields = redis.pcall('HLEN', lock)
  if type(fields) == 'table' then
    return { 'refused', fields.err .. ' (HLEN)' }
  end
  if fields > 0 then
    return { 'foreign', lock, 'a hash of somebody else' }
  end
  return { 'free' }
end

local answers = {}
for i, lock in ipairs(KEYS) do
  answers[i] = inspect(lock)
end
return answers
