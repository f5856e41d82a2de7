-- The hash `lock` of a key: the session that holds it under `owner`, its `epoch`, `metadata`, and a field for each level.

-- Checks what was read of a hash: who holds it, the epoch, and how many fields there are. A hash without an epoch that a counter
-- gives was written by somebody else. Answers whether a session holds it.
local function is_held(lock, owner, epoch, fields)
  local is_epoch = epoch and string.match(epoch, '^%d+$') and tonumber(epoch) < 9007199254740992
  if fields > 0 and not (owner and is_epoch) then
    raise('foreign ' .. lock .. ' a hash of somebody else')
  end
  return fields > 0
end

-- Reads who holds a key. Answers: held, epoch, metadata, ms left · free; and the session. Raises: foreign, key, type · refused, reply.
local function holder_of(lock)
  local held = call('HMGET', lock, 'owner', 'epoch', 'metadata')
  if is_held(lock, held[1], held[2], call('HLEN', lock)) then
    return { 'held', held[2], held[3] or '', string.format('%.0f', call('PTTL', lock)) }, held[1]
  end
  return { 'free' }
end

