-- The holders of a key, in the hash `lock`: under `writer` the entry of the writer, or -; under each reader's owner id its entry. An
-- entry is: until when its lease lasts in ms, owner, epoch, metadata. Invariant: an entry whose time is over holds nothing, and no
-- reader holds beside a writer. The hash itself ends with the last lease.

-- Until when the lease of an entry lasts, its owner, epoch and metadata; nothing if it is over, or if there is none.
local function live(entry)
  local ends, owner, number, metadata = string.match(entry or '', '^(%d+) (%x+) (%d+) (.*)$')
  if ends and tonumber(ends) > clock() then
    return tonumber(ends), owner, number, metadata
  end
end

local function entry_of(ends, owner, number, metadata)
  return string.format('%d %s %s %s', ends, owner, number, metadata)
end

-- The field of what this owner holds, and what `live` says of it; `known` are the fields `writer` and that of the owner.
local function held_by(known, owner)
  for i, field in ipairs({ 'writer', owner }) do
    local ends, of, number, metadata = live(known[i])
    if of == owner then
      return field, ends, number, metadata
    end
  end
end

-- Until when holders keep an owner of this mode (`w` or `r`) out, in ms; nothing if none does. And the field `writer`. Looking for
-- readers removes those whose leases are over.
local function in_the_way(lock, mode)
  local writer = expect(redis.pcall('HGET', lock, 'writer'), 'HGET')
  local latest = live(writer)
  if latest or mode == 'r' or not writer then
    return latest, writer
  end
  local all = expect(redis.pcall('HGETALL', lock), 'HGETALL')
  for i = 1, #all, 2 do
    local ends = live(all[i + 1])
    if ends then
      latest = math.max(latest or 0, ends)
    elseif all[i] ~= 'writer' then
      expect(redis.pcall('HDEL', lock, all[i]), 'HDEL')
    end
  end
  return latest, writer
end

-- Grants a key that no holder keeps the owner out of, with the next epoch of its counter.
-- Answers: granted, epoch · soon · spent, key · older, key · foreign, key, type · refused, reply.
-- The counter is written before the entry, so that a holder always has an epoch above all earlier ones.
local function give(lock, fence, owner, mode, lease, lifetime, metadata)
  local number, why = read_and_count(fence, lifetime)
  if not number then
    return why
  end
  local entry, written = entry_of(clock() + lease, owner, number, since() .. metadata), nil
  if mode == 'w' then
    written = redis.pcall('HSET', lock, 'writer', entry)
  else
    written = redis.pcall('HSET', lock, 'writer', '-', owner, entry)
  end
  if type(written) == 'table' then
    return script_error(lock, written.err, 'HSET')
  end
  local prolonged = prolong(lock, lease)
  if prolonged ~= 'held' then
    return prolonged
  end
  -- Readers that died hold nothing, and are removed now and then where no writer comes. Nothing may be raised: it is granted.
  local fields = mode == 'r' and redis.pcall('HLEN', lock)
  if type(fields) == 'number' and fields % 64 == 0 then
    pcall(in_the_way, lock, 'w')
  end
  return 'granted ' .. number
end

-- Grants a key if its holders allow it; in the queue the mode stands before the metadata. Answers as `give`; or
-- taken.
local function grant_waiter(lock, fence, owner, lease, lifetime, metadata)
  local mode = string.sub(metadata, 1, 1)
  local taken, writer = in_the_way(lock, mode)
  if taken then
    return 'taken'
  elseif not writer and expect(redis.pcall('EXISTS', lock), 'EXISTS') ~= 0 then
    return 'foreign ' .. lock .. ' a hash of somebody else'
  end
  return give(lock, fence, owner, mode, lease, lifetime, string.sub(metadata, 2))
end

