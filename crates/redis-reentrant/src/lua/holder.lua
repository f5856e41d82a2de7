-- The hash `lock` of a key: the session that holds it under `owner`, its `epoch`, `metadata`, and a field for each level.

-- Reads the session that holds a key, its epoch and one more field, and how many fields there are; nothing if nobody holds it.
-- Raises: foreign, key, type · refused, reply. A hash without an epoch that a counter gives was written by somebody else.
local function holder(lock, field)
  -- Of a free key, too: whoever may not read a lock would not be able to give it back.
  local owner, epoch, other = unpack(call('HMGET', lock, 'owner', 'epoch', field))
  local fields = call('HLEN', lock)
  if fields == 0 then
    return nil
  elseif not (owner and epoch and string.match(epoch, '^%d+$') and tonumber(epoch) < 9007199254740992) then
    raise('foreign ' .. lock .. ' a hash of somebody else')
  end
  return owner, epoch, other, fields
end

-- Says who holds a key. Answers: held, epoch, metadata, ms left · free.
local function told(lock, epoch, metadata)
  return epoch and { 'held', epoch, metadata or '', string.format('%.0f', call('PTTL', lock)) } or 'free'
end

