-- The queue of a key, which the scripts of acquiring and of releasing share. It is the hash `queue`, here `line`.
-- Under each owner is its place: the owner before it (of the first, the last owner that was before it), the owner behind it
-- or -, until when the place counts in ms, inbox, lease in ms, metadata. Under `first` and
-- `last` are the owners at the ends; under `latest`, until when the newest place counts; under `woke`, when a waiter asked
-- after no place had counted any more. An inbox begins with `!` if its subscribers can be counted here, with `?` if they
-- cannot, and is `-` if there is none. Invariant: nobody overtakes a place that counts.

-- In front of this stands `grant_waiter(lock, fence, owner, lease, metadata)`, which grants a key to the first in its
-- queue, if the holders of the key allow that. It answers: granted, epoch · soon · any other answer, if it cannot be granted.

local made

-- What a script needs where somebody waits. Made at its first use: most scripts end without it.
local function queues()
  if made then
    return made
  end

  -- How long a place counts after its owner last asked, which is also the longest first lease; and how long a queue is kept
  -- after any of its owners asked.
  local COUNTS, KEPT = 3000, 60000
  -- How long the waiters have to ask again when no place counts any more: it may be the server that stood still.
  local EXCUSED = 1000

  -- Whether the owner of this inbox can be granted the key: if its place counts, unless the inbox certainly has no subscriber;
  -- and if it could not ask because the server stood still, only if the inbox certainly has one. Checked before anything is
  -- granted: a notification of a grant that then went to another owner could still arrive through a replica.
  local function there(inbox, counts, stood_still)
    if not counts and not stood_still then
      return false
    end
    local listeners = string.sub(inbox, 1, 1) == '!' and redis.pcall('PUBSUB', 'NUMSUB', string.sub(inbox, 2))[2]
    return listeners ~= 0 and (counts or tonumber(listeners) ~= nil)
  end

  -- A place with other neighbours, as far as they are given.
  local function between(place, before, behind)
    local old_before, old_behind, rest = string.match(place, '^(%S+) (%S+) (.*)$')
    return rest and (before or old_before) .. ' ' .. (behind or old_behind) .. ' ' .. rest or place
  end

  -- Takes neighbours out of the queue, which stand between `before`, unless they are the first, and `behind` or -. Answers a
  -- refusal, if there is one. The links are written first: a place without links is never reached.
  local function unlink(line, owners, before, behind)
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
    -- No other place is there; or the queue is damaged, and its waiters will ask again.
    if not links then
      return refusal(redis.pcall('DEL', line), 'DEL')
    end
    return refusal(redis.pcall('HSET', line, unpack(links)), 'HSET') or refusal(redis.pcall('HDEL', line, unpack(owners)), 'HDEL')
  end

  -- Reads a place. Answers nothing if Leasehold did not write it, or if it is from before the clock was set back.
  local function read(place, now)
    local behind, till, inbox, lease, metadata = string.match(place or '', '^%S+ (%S+) (%d+) (%S+) ([1-9]%d*) (.*)$')
    if metadata and tonumber(till) <= now + 2 * COUNTS and tonumber(lease) <= COUNTS then
      return behind, tonumber(till) > now, inbox, lease, metadata
    end
  end

  -- Grants a key that is free, or whose holder releases it, to the first owner in the queue that is still there, and notifies
  -- the process of that owner alone; the owner `asking` gets the lease it asked for and no notification.
  -- Answers: served, owner, epoch, and a refusal if the place stayed · free: there is no queue · nobody: no place of it can be
  -- granted it · later: there are too many places to go through at once · failed, and an answer as of `grant_waiter` or `refusal`: it
  -- cannot be done, and nothing was granted. An owner that cannot be notified now, but asked a moment ago, is passed over and
  -- keeps its place.
  local function serve(lock, fence, line, asking, asked_lease)
    -- The most places that one call goes through: meanwhile the server does nothing else.
    local most = 1000
    local known = redis.pcall('HMGET', line, 'first', 'latest', 'woke')
    if refusal(known, 'HMGET') then
      return 'failed', refusal(known, 'HMGET')
    elseif not known[1] then
      return 'free'
    end
    local owner, now, before, refused = known[1], clock(), nil, nil
    -- Those that are passed and count no more, since `before`. What is written of them is written once.
    local over = {}
    local function drop(behind)
      return over[1] and unlink(line, over, before, behind) or nil
    end
    local stood_still = (tonumber(known[2]) or now + 1) <= now or now < (tonumber(known[3]) or 0) + EXCUSED
    for _ = 1, most do
      local place = redis.pcall('HGET', line, owner)
      if refusal(place, 'HGET') then
        return 'failed', refusal(place, 'HGET')
      end
      local behind, counts, inbox, lease, metadata = read(place, now)
      if not behind then
        refused = refusal(redis.pcall('DEL', line), 'DEL')
      elseif owner == asking or there(inbox, counts, stood_still) then
        local first_lease = owner == asking and asked_lease or lease
        local answer = grant_waiter(lock, fence, owner, first_lease, metadata)
        local number = string.match(answer, '^granted (%d+)$')
        if answer == 'soon' and owner ~= asking and inbox ~= '-' then
          -- The first in the queue asks again at once: by then there is a number.
          redis.pcall('PUBLISH', string.sub(inbox, 2), owner .. ' - ' .. lock)
        end
        if not number then
          return 'failed', drop(owner) or answer
        end
        if not counts then
          -- Of waiters that died together, only one is granted the key.
          refused = refusal(redis.pcall('HSET', line, 'latest', '-', 'woke', '-'), 'HSET')
        end
        if owner ~= asking and inbox ~= '-' then
          local told = redis.pcall('PUBLISH', string.sub(inbox, 2), owner .. ' ' .. number .. ' ' .. lock)
          refused = refusal(told, 'PUBLISH') or refused
        end
        over[#over + 1] = owner
        return 'served', owner, number, drop(behind) or refused
      elseif counts then
        refused = drop(owner)
        before, over = owner, {}
      else
        over[#over + 1] = owner
      end
      if behind == '-' then
        refused = refused or drop('-')
      end
      if refused then
        return 'failed', refused
      elseif not behind or behind == '-' then
        return 'nobody'
      end
      owner = behind
    end
    refused = drop(owner)
    return refused and 'failed' or 'later', refused
  end

  -- Whether a place is where the ends of the queue and its neighbours say; and a refusal if there is one.
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

  -- Takes a place in the queue, or confirms the place that this owner has. Answers false, and a refusal if there is one, if the
  -- owner has no place afterwards. A damaged queue is deleted: a place without links would wait for ever. All others ask again.
  local function queue(line, owner, inbox, lease, metadata)
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
    local text = string.format('%d %s %d %s', till, inbox, first_lease, metadata)
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
    -- A hash without any of these is not a queue.
    if not written and not (place or first or last or known[4]) and redis.pcall('EXISTS', line) ~= 0 then
      return false
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

  -- Gives up the place of this owner, if it has one. Answers a refusal, if there is one.
  local function leave(line, owner)
    local known = redis.pcall('HMGET', line, owner, 'first')
    if known.err then
      return refusal(known, 'HMGET')
    end
    local place, first = known[1], known[2]
    local before, behind = string.match(place or '', '^(%S+) (%S+)')
    return place and unlink(line, { owner }, first ~= owner and before or nil, behind or '-') or nil
  end

  made = { COUNTS = COUNTS, serve = serve, queue = queue, leave = leave }
  return made
end

