-- The queue of a key, which the scripts of acquiring and of releasing share. It is the hash `queue`, here `line`.
-- Under each owner is its place: the owner before it (of the first, the last owner that was before it), the owner behind it
-- or -, until when the place counts in ms, inbox, lease in ms, metadata. Under `first` and
-- `last` are the owners at the ends; under `latest`, until when the newest place counts; under `woke`, when a waiter asked
-- after no place had counted any more. An inbox begins with `!` if its subscribers can be counted here, with `?` if they
-- cannot, and is `-` if there is none. Invariant: nobody overtakes a place that counts.

-- In front of this stands `grant_waiter(lock, fence, owner, lease, metadata)`, which grants a key to the first in its
-- queue, if the holders of the key allow that. It answers: granted, epoch · soon · any other answer, if it cannot be granted now.

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

  -- Takes neighbours out of the queue, which stand between `before`, unless they are the first, and `behind` or -. The links are
  -- written first: a place without links is never reached.
  local function unlink(line, owners, before, behind)
    local links
    if before then
      local ahead, after = call('HGET', line, before), behind ~= '-' and call('HGET', line, behind)
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
      call('DEL', line)
    else
      call('HSET', line, unpack(links))
      call('HDEL', line, unpack(owners))
    end
  end

  -- Reads a place. Answers nothing if Leasehold did not write it, or if it is from before the clock was set back.
  local function place_of(place, now)
    local behind, till, inbox, lease, metadata = string.match(place or '', '^%S+ (%S+) (%d+) (%S+) ([1-9]%d*) (.*)$')
    if metadata and tonumber(till) <= now + 2 * COUNTS and tonumber(lease) <= COUNTS then
      return behind, tonumber(till) > now, inbox, lease, metadata
    end
  end

  -- Grants a key that is free, or whose holder releases it, to the first owner in the queue that is still there, and notifies
  -- the process of that owner alone; the owner `asking` gets the lease it asked for and no notification.
  -- Answers: served, owner, epoch, and what the server refused to do after the grant · free: there is no queue · nobody: no place of
  -- it can be granted it · later: there are too many places to go through at once · soon, or another answer of `grant_waiter`: it
  -- cannot be granted now. What it raises is raised before a grant. An owner that cannot be notified now, but asked a moment ago, is
  -- passed over and keeps its place.
  local function serve(lock, fence, line, asking, asked_lease)
    -- The most places that one call goes through: meanwhile the server does nothing else.
    local most = 1000
    local known = read('HMGET', line, 'first', 'latest', 'woke')
    if not (known and known[1]) then
      return 'free'
    end
    local owner, now, before = known[1], clock(), nil
    -- Those that are passed and count no more, since `before`. What is written of them is written once.
    local over = {}
    local function drop(behind)
      if over[1] then
        unlink(line, over, before, behind)
      end
    end
    local stood_still = (tonumber(known[2]) or now + 1) <= now or now < (tonumber(known[3]) or 0) + EXCUSED
    for _ = 1, most do
      local behind, counts, inbox, lease, metadata = place_of(call('HGET', line, owner), now)
      if not behind then
        call('DEL', line)
        return 'nobody'
      elseif owner == asking or there(inbox, counts, stood_still) then
        local first_lease = owner == asking and asked_lease or lease
        local answer = grant_waiter(lock, fence, owner, first_lease, metadata)
        local number = string.match(answer, '^granted (%d+)$')
        local is_told = owner ~= asking and inbox ~= '-'
        if answer == 'soon' and is_told then
          -- The first in the queue asks again at once: by then there is a number.
          redis.pcall('PUBLISH', string.sub(inbox, 2), owner .. ' - ' .. lock)
        end
        if not number then
          drop(owner)
          return answer
        end
        local untold = is_told and refusal('PUBLISH', string.sub(inbox, 2), owner .. ' ' .. number .. ' ' .. lock)
        -- Of waiters that died together, only one is granted the key.
        local unmarked = not counts and refusal('HSET', line, 'latest', '-', 'woke', '-')
        over[#over + 1] = owner
        local done, raised = pcall(drop, behind)
        return 'served', owner, number, not done and refused(raised) or untold or unmarked or nil
      elseif counts then
        drop(owner)
        before, over = owner, {}
      else
        over[#over + 1] = owner
      end
      if behind == '-' then
        drop('-')
        return 'nobody'
      end
      owner = behind
    end
    drop(owner)
    return 'later'
  end

  -- Whether a place is where the ends of the queue and its neighbours say.
  local function linked(line, owner, place, first, last)
    local before, behind = string.match(place, '^(%S+) (%S+) ')
    if not (before and first and last) then
      return false
    elseif owner == first and owner == last then
      return behind == '-'
    end
    local around = call('HMGET', line, before, behind)
    local follows = owner == first or string.match(around[1] or '', '^%S+ (%S+)') == owner
    local precedes = behind == '-' and owner == last or string.match(around[2] or '', '^%S+') == owner
    return follows and precedes
  end

  -- Takes a place in the queue, or confirms the place that this owner has. Answers whether it has a place afterwards: not in a hash
  -- of somebody else. A damaged queue is deleted: a place without links would wait for ever. All others ask again.
  local function queue(line, owner, inbox, lease, metadata)
    local known = read('HMGET', line, owner, 'first', 'last', 'latest', 'woke')
    if not known then
      return false
    end
    local place, first, last = known[1], known[2], known[3]
    local now, first_lease = clock(), math.min(tonumber(lease), COUNTS)
    local till, woke = now + COUNTS, known[5] or '-'
    if (tonumber(known[4]) or now + 1) <= now then
      woke = now
    end
    local text = string.format('%d %s %d %s', till, inbox, first_lease, metadata)
    local is_ours, written = place or first or last, false
    local function write(...)
      call('HSET', line, 'latest', till, 'woke', woke, ...)
      written = true
    end
    if place then
      if linked(line, owner, place, first, last) then
        write(owner, string.match(place, '^%S+ %S+ ') .. text)
      end
    elseif first and last then
      local ahead = call('HGET', line, last)
      if string.match(ahead or '', '^%S+ (%S+) ') == '-' then
        write(last, between(ahead, nil, owner), owner, last .. ' - ' .. text, 'last', owner)
      end
    end
    -- A hash without any of these is not a queue.
    if not written and not (is_ours or known[4]) and call('EXISTS', line) ~= 0 then
      return false
    end
    if not written then
      if is_ours then
        call('DEL', line)
      end
      write('first', owner, 'last', owner, owner, '- - ' .. text)
    end
    call('PEXPIRE', line, KEPT)
    return true
  end

  -- Gives up the place of this owner, if it has one.
  local function leave(line, owner)
    local known = read('HMGET', line, owner, 'first')
    local place, first = unpack(known or {})
    local before, behind = string.match(place or '', '^(%S+) (%S+)')
    if place then
      unlink(line, { owner }, first ~= owner and before or nil, behind or '-')
    end
  end

  made = { COUNTS = COUNTS, serve = serve, queue = queue, leave = leave }
  return made
end

