-- What claims and releases share.
-- A line is a hash of those who wait for a key. Under each owner is its place: the owner before it (of the first, whoever
-- was there), the one behind it or -, until when it counts in ms, inbox, lease in ms, lifetime of the counter in ms,
-- metadata. Under `first` and `last` are the owners at the ends; under `latest`, until when the place counts that was
-- asked for last; under `woke`, when somebody asked after none had counted any more. What an inbox begins with: `!` whether
-- somebody hears it can be asked here, `?` it cannot, `-` there is none.

-- How long a place counts after it was last asked for, which is also the longest first lease; and how long a line is
-- kept after any of its places was.
local COUNTS, KEPT = 3000, 60000
-- How long whoever waits has to ask, when nobody's place counts any more: it may be the server that stood still.
local EXCUSED = 1000

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
    return 'refused ' .. written.err .. ' (SET)'
  end
  return 'granted ' .. number
end

-- Whether whoever gave this inbox can be granted something: one whose place counts, unless certainly nobody hears, and one
-- who did not come to ask because the server stood still, if certainly somebody does. Asked before anything is granted: a
-- message about a grant that then went to another could still be heard through a replica.
local function there(inbox, counts, stood_still)
  if not counts and not stood_still then
    return false
  end
  local listeners = string.sub(inbox, 1, 1) == '!' and redis.pcall('PUBSUB', 'NUMSUB', string.sub(inbox, 2))[2]
  return listeners ~= 0 and (counts or tonumber(listeners) ~= nil)
end

-- The same place between other neighbours, as far as they are given.
local function between(place, before, behind)
  local old_before, old_behind, rest = string.match(place, '^(%S+) (%S+) (.*)$')
  return rest and (before or old_before) .. ' ' .. (behind or old_behind) .. ' ' .. rest or place
end

-- Takes a place out of the line; `before` is the owner before it, unless it is the first. Answers a refusal, if there is
-- one. The links are written first: what else may stay is seen by nobody.
local function unlink(line, owner, place, before)
  local behind = string.match(place, '^%S+ (%S+)') or '-'
  local links
  if before then
    local ahead, after = redis.pcall('HGET', line, before), behind ~= '-' and redis.pcall('HGET', line, behind)
    local refused = refusal(ahead, 'HGET') or refusal(after, 'HGET')
    if refused then
      return refused
    end
    if ahead and behind == '-' then
      links = { before, between(ahead, nil, '-'), 'last', before }
    elseif ahead and after then
      links = { before, between(ahead, nil, behind), behind, between(after, before) }
    end
  elseif behind ~= '-' then
    links = { 'first', behind }
  end
  -- Nobody else is there; or somebody tore the line, and those who wait will ask again.
  if not links then
    return refusal(redis.pcall('DEL', line), 'DEL')
  end
  return refusal(redis.pcall('HSET', line, unpack(links)), 'HSET') or refusal(redis.pcall('HDEL', line, owner), 'HDEL')
end

-- Reads a place. Nothing if it is none of ours, or from before the clock was set back.
local function read(place, now)
  local behind, till, inbox, lease, lifetime, metadata =
    string.match(place or '', '^%S+ (%S+) (%d+) (%S+) ([1-9]%d*) ([1-9]%d*) (.*)$')
  if metadata and tonumber(till) <= now + 2 * COUNTS and tonumber(lease) <= COUNTS and #lifetime <= 15 then
    return behind, tonumber(till) > now, inbox, lease, lifetime, metadata
  end
end

-- Grants a key that nobody has, or whose holder goes, to the first in line who is still there, and tells that process
-- alone; if that is who is `asking`, with this lease and without a word.
-- Answers: served, owner, number, and a refusal if the place stayed · nobody · later: there are too many to go through in
-- one go · trouble, and as `grant` or `refusal`: it cannot be done, and nothing was granted.
-- Whoever cannot be told now, but asked a moment ago, is passed over and keeps the place.
local function serve(lock, fence, line, asking, asked_lease)
  -- So many are looked at: meanwhile the server does nothing else.
  local most = 1000
  local known = redis.pcall('HMGET', line, 'first', 'latest', 'woke')
  if refusal(known, 'HMGET') then
    return 'trouble', refusal(known, 'HMGET')
  elseif not known[1] then
    return 'nobody'
  end
  local owner, now, before, refused = known[1], clock(), nil, nil
  local stood_still = (tonumber(known[2]) or now + 1) <= now or now < (tonumber(known[3]) or 0) + EXCUSED
  for _ = 1, most do
    local place = redis.pcall('HGET', line, owner)
    if refusal(place, 'HGET') then
      return 'trouble', refusal(place, 'HGET')
    end
    local behind, counts, inbox, lease, lifetime, metadata = read(place, now)
    if not behind then
      refused = refusal(redis.pcall('DEL', line), 'DEL')
    elseif owner == asking or there(inbox, counts, stood_still) then
      local answer = grant(lock, fence, owner, owner == asking and asked_lease or lease, lifetime, metadata)
      local number = string.match(answer, '^granted (%d+)$')
      if not number then
        return 'trouble', answer
      end
      if not counts then
        -- Of those who died together, one is granted something.
        refused = refusal(redis.pcall('HSET', line, 'latest', '-', 'woke', '-'), 'HSET')
      end
      if owner ~= asking and inbox ~= '-' then
        local told = redis.pcall('PUBLISH', string.sub(inbox, 2), owner .. ' ' .. number .. ' ' .. lock)
        refused = refusal(told, 'PUBLISH') or refused
      end
      return 'served', owner, number, unlink(line, owner, place, before) or refused
    elseif counts then
      before = owner
    else
      refused = unlink(line, owner, place, before)
    end
    if refused then
      return 'trouble', refused
    elseif not behind or behind == '-' then
      return 'nobody'
    end
    owner = behind
  end
  return 'later'
end

-- Whether a place is where the ends of the line and its neighbours say; and a refusal if there is one.
local function linked(line, owner, place, first, last)
  local before, behind = string.match(place, '^(%S+) (%S+) ')
  if not (before and first and last) then
    return false
  elseif owner == first and owner == last then
    return behind == '-'
  end
  local around = redis.pcall('HMGET', line, before, behind)
  if around.err then
    return false, refusal(around, 'HMGET')
  end
  local follows = owner == first or string.match(around[1] or '', '^%S+ (%S+)') == owner
  local precedes = behind == '-' and owner == last or string.match(around[2] or '', '^%S+') == owner
  return follows and precedes
end

-- Takes a place in line, or confirms the one that this owner has. False, and a refusal if there is one: it has none.
-- Of a line that somebody tore nothing stays: who is linked to nothing would wait for ever. All others ask again.
local function queue(line, owner, inbox, lease, lifetime, metadata)
  local known = redis.pcall('HMGET', line, owner, 'first', 'last', 'latest', 'woke')
  if known.err then
    return false, refusal(known, 'HMGET')
  end
  local place, first, last = known[1], known[2], known[3]
  local now, first_lease = clock(), math.min(tonumber(lease), COUNTS)
  local till, woke = now + COUNTS, known[5] or '-'
  if (tonumber(known[4]) or now + 1) <= now then
    woke = now
  end
  local text = string.format('%d %s %d %s %s', till, inbox, first_lease, lifetime, metadata)
  local written
  if place then
    local whole, refused = linked(line, owner, place, first, last)
    if refused then
      return false, refused
    elseif whole then
      written = redis.pcall('HSET', line, owner, string.match(place, '^%S+ %S+ ') .. text, 'latest', till, 'woke', woke)
    end
  elseif first and last then
    local ahead = redis.pcall('HGET', line, last)
    if refusal(ahead, 'HGET') then
      return false, refusal(ahead, 'HGET')
    elseif string.match(ahead or '', '^%S+ (%S+) ') == '-' then
      local mine, ahead_of_mine = last .. ' - ' .. text, between(ahead, nil, owner)
      written = redis.pcall('HSET', line, last, ahead_of_mine, owner, mine, 'last', owner, 'latest', till, 'woke', woke)
    end
  end
  if not written then
    local torn = (place or first or last) and refusal(redis.pcall('DEL', line), 'DEL')
    if torn then
      return false, torn
    end
    written = redis.pcall('HSET', line, 'first', owner, 'last', owner, owner, '- - ' .. text, 'latest', till, 'woke', woke)
  end
  local refused = refusal(written, 'HSET') or refusal(redis.pcall('PEXPIRE', line, KEPT), 'PEXPIRE')
  return not refused, refused
end

-- Gives up a place in line, if this owner has one. Answers a refusal, if there is one.
local function leave(line, owner)
  local known = redis.pcall('HMGET', line, owner, 'first')
  if known.err then
    return refusal(known, 'HMGET')
  end
  local place, first = known[1], known[2]
  return place and unlink(line, owner, place, first ~= owner and string.match(place, '^%S+') or nil) or nil
end
