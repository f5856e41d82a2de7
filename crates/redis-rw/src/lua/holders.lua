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

-- The field of what this owner holds, and what `live` says of it; `known` are the fields `writer` and that of the owner, where they
-- were read before.
local function held_by(lock, owner, known)
  known = known or read('HMGET', lock, 'writer', owner) or {}
  for i, field in ipairs({ 'writer', owner }) do
    local ends, of, number, metadata = live(known[i])
    if of == owner then
      return field, ends, number, metadata
    end
  end
end

-- Where to look for readers first: the sorted set `readers`, under a reader's owner id until when its lease lasted in ms when
-- somebody looked. It begins where a hash has more than a few fields. Who holds the key is in the hash alone: a renewal writes there
-- alone, and where the set is gone, is somebody else's or cannot be written, a look goes through all readers.
local FEW = 16

local function readers_of(lock)
  return (string.gsub(lock, 'lock$', 'readers'))
end

-- For as long as it lasts to the end of two such leases, so that few of those that are listed write how long.
local function list(lock, owner, ends)
  local readers, lease = readers_of(lock), math.max(1, ends - clock())
  redis.pcall('ZADD', readers, string.format('%d', ends), owner)
  local left = redis.pcall('PTTL', readers)
  if type(left) == 'number' and left < lease then
    redis.pcall('PEXPIRE', readers, string.format('%d', 2 * lease))
  end
end

local function unlist(lock, owners)
  local removed = redis.pcall('ZREM', readers_of(lock), unpack(owners))
  return type(removed) == 'number' and removed > 0
end

-- Looks for the listed owners in the hash, and removes those that do not hold the key. Answers until when one of them does, if any;
-- each that does, behind its end; and whether there is less to look through now.
local function look_up(lock, listed)
  if not listed[1] then
    return nil, {}, false
  end
  local entries = call('HMGET', lock, unpack(listed))
  local latest, alive, over, dead = nil, {}, {}, {}
  for i, owner in ipairs(listed) do
    local ends = live(entries[i])
    if ends then
      latest = math.max(latest or 0, ends)
      alive[#alive + 1], alive[#alive + 2] = string.format('%d', ends), owner
    else
      over[#over + 1] = owner
      dead[#dead + 1] = entries[i] and owner ~= 'writer' and owner or nil
    end
  end
  if dead[1] then
    call('HDEL', lock, unpack(dead))
  end
  return latest, alive, over[1] ~= nil and unlist(lock, over)
end

-- Until when a reader holds a key, in ms, which is seldom the last of them to end; nothing if none does. Removes those that it meets
-- whose leases are over.
local function read_until(lock)
  local latest, _, fewer, most = nil, nil, nil, 0
  repeat
    latest, _, fewer = look_up(lock, redis.pcall('ZREVRANGE', readers_of(lock), 0, most))
    most = 99
  until latest or not fewer
  if latest then
    return latest
  end
  local all = call('HGETALL', lock)
  for i = 1, #all, 2 do
    local ends = live(all[i + 1])
    if ends then
      latest = math.max(latest or 0, ends)
      if #all > 2 * FEW then
        list(lock, all[i], ends)
      end
    elseif all[i] ~= 'writer' then
      call('HDEL', lock, all[i])
    end
  end
  return latest
end

-- Removes some of the readers whose leases are over, more than come in meanwhile: where no writer comes, nobody else does.
local function remove_some(lock)
  local readers = readers_of(lock)
  local first = redis.pcall('ZRANGEBYSCORE', readers, '-inf', string.format('%d', clock()), 'LIMIT', 0, 8)
  local _, alive = look_up(lock, first)
  if alive[1] then
    redis.pcall('ZADD', readers, unpack(alive))
  end
end

-- Until when holders keep an owner of this mode (`w` or `r`) out, in ms; nothing if none does. And the field `writer`.
local function in_the_way(lock, mode)
  local writer = call('HGET', lock, 'writer')
  local latest = live(writer)
  if latest or mode == 'r' or not writer then
    return latest, writer
  end
  return read_until(lock), writer
end

-- Grants a key that no holder keeps the owner out of, with the next epoch of its counter; `is_new`: there is no hash yet.
-- Answers: granted, epoch · soon. Raises: spent, key · foreign, key, type · refused, reply.
-- The counter is written before the entry, so that a holder always has an epoch above all earlier ones.
local function give(lock, fence, owner, mode, lease, metadata, is_new)
  local number = draw(fence)
  if not number then
    return 'soon'
  end
  local ends = clock() + lease
  local entry = entry_of(ends, owner, number, since() .. metadata)
  if mode == 'w' then
    call('HSET', lock, 'writer', entry)
  else
    call('HSET', lock, 'writer', '-', owner, entry)
  end
  if is_new then
    -- There is no longer lease to keep, and no other reader to list.
    call('PEXPIRE', lock, lease)
    return 'granted ' .. number
  end
  prolong(lock, lease)
  local fields = mode == 'r' and redis.pcall('HLEN', lock)
  if type(fields) == 'number' and fields > FEW then
    list(lock, owner, ends)
    -- Nothing may be raised: it is granted.
    pcall(remove_some, lock)
  end
  return 'granted ' .. number
end

-- Grants a key if its holders allow it; in the queue the mode stands before the metadata. Answers as `give`; or
-- taken.
local function grant_waiter(lock, fence, owner, lease, metadata)
  local mode = string.sub(metadata, 1, 1)
  local taken, writer = in_the_way(lock, mode)
  if taken then
    return 'taken'
  elseif not writer and call('EXISTS', lock) ~= 0 then
    raise('foreign ' .. lock .. ' a hash of somebody else')
  end
  return give(lock, fence, owner, mode, lease, string.sub(metadata, 2))
end

