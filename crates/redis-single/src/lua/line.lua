-- What claims and releases share.
-- A line is a hash of those who wait for a key: `first` and `last`, the numbers of the first and the last place; for
-- each number the owner of the place; for each owner its place: number, until when it counts in ms, inbox, lease in ms,
-- lifetime of the counter in ms, metadata. What an inbox begins with: `!` whether somebody hears it can be asked here,
-- `?` it cannot, `-` there is none.

-- Grants a key that nobody else may have, with the next number of its counter.
-- Answers: granted, number · spent, key · foreign, key, type · refused, reply.
-- The counter is written before the lock, so that whoever holds a lock has a number above all earlier ones.
local function grant(lock, fence, owner, lease, lifetime, metadata)
  local number, now = draw(fence, lifetime)
  if not number then
    return now
  end
  local written = redis.pcall('SET', lock, owner .. ' ' .. number .. ' {"since":' .. now .. metadata, 'PX', lease)
  if written.err then
    return 'refused ' .. written.err
  end
  return 'granted ' .. number
end

-- Whether the process behind an inbox is certainly gone. Asked before anything is granted: a message about a grant that
-- then went to another could still be heard through a replica.
local function deserted(inbox)
  return string.sub(inbox, 1, 1) == '!' and redis.pcall('PUBSUB', 'NUMSUB', string.sub(inbox, 2))[2] == 0
end

local function pass(lock, fence, line, asking)
  -- Who left has left a gap. So many of them are stepped over at a time: meanwhile the server does nothing else.
  local most = 1000
  local ends = redis.call('HMGET', line, 'first', 'last')
  if not ends[2] then
    return false
  end
  local now, first, last, served, drawn = clock(), tonumber(ends[1] or 1), tonumber(ends[2]), false, nil
  local stop = math.min(last, first + most)
  while first <= stop and not served do
    local number = string.format('%d', first)
    first = first + 1
    local owner = redis.call('HGET', line, number)
    if owner then
      local place = redis.call('HGET', line, owner) or ''
      redis.call('HDEL', line, number, owner)
      local till, inbox, lease, lifetime, metadata = string.match(place, '^%d+ (%d+) (%S+) (%d+) (%d+) (.*)$')
      if owner == asking then
        served = owner
      elseif till and tonumber(till) > now and not deserted(inbox) then
        local answer = grant(lock, fence, owner, lease, lifetime, metadata)
        local tenure = string.match(answer, '^granted (%d+)$')
        if tenure then
          served, drawn = owner, tenure
          if inbox ~= '-' then
            redis.pcall('PUBLISH', string.sub(inbox, 2), owner .. ' ' .. tenure .. ' ' .. lock)
          end
        end
      end
    end
  end
  -- From here on nothing may raise: what was granted stands.
  if first > last then
    redis.pcall('DEL', line)
  else
    redis.pcall('HSET', line, 'first', string.format('%d', first))
  end
  return served, drawn
end

-- Grants a key that nobody has, or whose holder goes, to the first in line who is still there, and tells that process
-- alone. Answers the owner, who has it now, and the number, except that nothing is granted to the one who is `asking`.
-- False: nobody.
local function serve(lock, fence, line, asking)
  if redis.pcall('EXISTS', line) ~= 1 then
    return false
  end
  local passed, served, drawn = pcall(pass, lock, fence, line, asking)
  return passed and served, drawn
end

-- Takes a place in line, or confirms the one that this owner has. False if the server does not let us.
local function queue(line, owner, inbox, lease, lifetime, metadata)
  -- How long a place counts after it was last asked for, which is also the longest first lease; and how long a line is
  -- kept after any of its places was.
  local counts, kept = 3000, 60000
  local place = redis.pcall('HGET', line, owner)
  local number
  if type(place) == 'table' then
    return false
  elseif place then
    number = string.match(place, '^%d+') or '0'
  else
    number = redis.pcall('HINCRBY', line, 'last', 1)
    if type(number) == 'table' then
      return false
    end
    number = string.format('%d', number)
  end
  local till = string.format('%d', clock() + counts)
  local first = string.format('%d', math.min(tonumber(lease), counts))
  place = table.concat({ number, till, inbox, first, lifetime, metadata }, ' ')
  local written = redis.pcall('HSET', line, number, owner, owner, place)
  if type(written) == 'table' then
    return false
  end
  redis.pcall('PEXPIRE', line, kept)
  return true
end

-- Gives up a place in line, if this owner has one.
local function leave(line, owner)
  local place = redis.pcall('HGET', line, owner)
  if type(place) ~= 'string' then
    return
  end
  redis.pcall('HDEL', line, owner, string.match(place, '^%d+') or owner)
  -- Without places there are only `first` and `last`.
  local fields = redis.pcall('HLEN', line)
  if type(fields) == 'number' and fields <= 2 then
    redis.pcall('DEL', line)
  end
end
