-- release of leasehold-redis-single, written by `cargo run -p leasehold-book` from the files of crates/*/src/lua.
-- The answer for a command that Redis refused with this reply: foreign, key, type · refused, reply. With its name, because
-- Redis 7.0 does not say which command a user may not run.
local function script_error(key, reply, command)
  if string.sub(reply, 1, 9) ~= 'WRONGTYPE' then
    return 'refused ' .. reply .. ' (' .. (command or 'GET') .. ')'
  end
  local kind = redis.pcall('TYPE', key)
  return 'foreign ' .. key .. ' ' .. (kind.ok or '')
end

-- What to answer to a command that the server refused; nothing if it did not. What somebody else wrote under our name is
-- none of ours, and a refusal is not "nothing there".
local function refusal(reply, command)
  if type(reply) == 'table' and reply.err and string.sub(reply.err, 1, 9) ~= 'WRONGTYPE' then
    return 'refused ' .. reply.err .. ' (' .. command .. ')'
  end
end

-- A reply that is no refusal. Raises what the server refused, for all locks of a run.
local function expect(reply, command)
  if type(reply) == 'table' and reply.err then
    error(reply.err .. ' (' .. command .. ')', 0)
  end
  return reply
end

-- The answer for what a function raised.
local function refused(raised)
  return 'refused ' .. string.gsub(type(raised) == 'table' and raised.err or tostring(raised), '\n', ' ')
end

-- Calls a function for one lock, so that what it raises touches no other.
local function alone(call, ...)
  local done, answer = pcall(call, ...)
  return done and answer or refused(answer)
end

-- Makes the function of a run from one for a single lock: of so many keys and arguments, behind the first `k` and `a`.
local function for_each(call, keys, arguments)
  return function(count, k, a)
    local answers = {}
    for i = 1, count do
      answers[i] = alone(call, k + keys * (i - 1), a + arguments * (i - 1))
    end
    return answers
  end
end

local ticks, moment

-- The server's clock in 1/16 ms since 1970, as epochs count: the same for a whole script, as in Redis itself.
local function clock_ticks()
  if not ticks then
    local time = redis.pcall('TIME')
    if time.err then
      error(time.err .. ' (TIME)', 0)
    end
    ticks = time[1] * 16000 + math.floor(time[2] * 2 / 125)
  end
  return ticks
end

-- The server's clock in ms since 1970.
local function clock()
  return math.floor(clock_ticks() / 16)
end

-- The first member of an entry's metadata, without its closing brace.
local function since()
  moment = moment or string.format('{"since":%d', clock())
  return moment
end

local next_epoch

-- Draws the next number of a counter that was not read yet. Answers as `next_epoch`.
local function read_and_count(fence, lifetime)
  local last = redis.pcall('GET', fence)
  if type(last) == 'table' then
    return false, script_error(fence, last.err)
  end
  return next_epoch(fence, last, lifetime)
end

-- Draws the next number of a counter, whose text is `last` (false if there is none), by the rule of `FencingToken::next_epoch`.
-- Answers the number as a text; or false and why there is none: soon (it would be more than a millisecond ahead of the clock, and
-- what a server forgets would be given again) · spent, key · foreign, key, type · refused, reply.
-- Grants alone do not take a counter more than a second ahead: the clock was set back, and the count goes on.
-- `regardless` of the clock there is a number in any case: for the step from writer to reader, which no claim can repeat.
-- All is checked before anything is written.
function next_epoch(fence, last, lifetime, regardless)
  local stored = last and string.match(last, '^epoch (%d+)$')
  if last and not stored then
    return false, 'foreign ' .. fence .. ' not a counter'
  end
  local now = clock_ticks()
  local most = now + 16
  local number = stored and math.max(stored + 1, now) or most
  -- No token is made of more: `FencingToken::MAX_EPOCH`.
  if number > 140737488355327 then
    return false, 'spent ' .. fence
  elseif number > most and number <= most + 16000 and not regardless then
    return false, 'soon'
  end
  local text, written = string.format('%d', number), nil
  if stored then
    written = redis.pcall('SET', fence, 'epoch ' .. text, 'PX', lifetime)
  else
    written = redis.pcall('SET', fence, 'epoch ' .. text, 'PX', lifetime, 'NX')
  end
  if not written then
    -- Of another type, which `MGET` does not show, or made by the same batch.
    return read_and_count(fence, lifetime)
  elseif written.err then
    return false, 'refused ' .. written.err .. ' (SET)'
  end
  return text
end

-- The entry of a key that is held, which `try_acquire.lua` and `release.lua` share: owner, epoch, metadata.

-- The end of an entry for whose lock somebody waits, or may: behind the JSON it means nothing. An entry without it is released
-- without a look at the queue.
local WAITED_FOR = ' '

local function is_waited_for(held)
  return string.sub(held, -1) == WAITED_FOR
end

-- Grants a key that no other owner may have, with the next epoch of its counter.
-- Answers: granted, epoch · soon · spent, key · foreign, key, type · refused, reply.
-- The counter is written before the lock, so that a holder always has an epoch above all earlier ones.
local function grant(lock, fence, owner, lease, lifetime, metadata)
  local number, why = read_and_count(fence, lifetime)
  if not number then
    return why
  end
  local written = redis.pcall('SET', lock, owner .. ' ' .. number .. ' ' .. since() .. metadata, 'PX', lease)
  if written.err then
    return 'refused ' .. written.err .. ' (SET)'
  end
  return 'granted ' .. number
end

-- The same, to the first in the queue.
local function grant_waiter(lock, fence, owner, lease, lifetime, metadata)
  return grant(lock, fence, owner, lease, lifetime, metadata .. WAITED_FOR)
end

-- Writes into the entry of a lock that somebody waits, so that its release looks for waiters. Answers a refusal, if there is
-- one. What Leasehold did not write stays as it is.
local function wait_for(lock, held)
  if string.match(held, '^%x+ %S+ ') and not is_waited_for(held) then
    return refusal(redis.pcall('SET', lock, held .. WAITED_FOR, 'KEEPTTL'), 'SET')
  end
end

-- The queue of a key, which the scripts of acquiring and of releasing share. It is the hash `queue`, here `line`.
-- Under each owner is its place: the owner before it (of the first, the last owner that was before it), the owner behind it
-- or -, until when the place counts in ms, inbox, lease in ms, lifetime of the counter in ms, metadata. Under `first` and
-- `last` are the owners at the ends; under `latest`, until when the newest place counts; under `woke`, when a waiter asked
-- after no place had counted any more. An inbox begins with `!` if its subscribers can be counted here, with `?` if they
-- cannot, and is `-` if there is none. Invariant: nobody overtakes a place that counts.

-- In front of this stands `grant_waiter(lock, fence, owner, lease, lifetime, metadata)`, which grants a key to the first in its
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
    local behind, till, inbox, lease, lifetime, metadata =
      string.match(place or '', '^%S+ (%S+) (%d+) (%S+) ([1-9]%d*) ([1-9]%d*) (.*)$')
    if metadata and tonumber(till) <= now + 2 * COUNTS and tonumber(lease) <= COUNTS and #lifetime <= 15 then
      return behind, tonumber(till) > now, inbox, lease, lifetime, metadata
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
      local behind, counts, inbox, lease, lifetime, metadata = read(place, now)
      if not behind then
        refused = refusal(redis.pcall('DEL', line), 'DEL')
      elseif owner == asking or there(inbox, counts, stood_still) then
        local first_lease = owner == asking and asked_lease or lease
        local answer = grant_waiter(lock, fence, owner, first_lease, lifetime, metadata)
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

-- Frees keys that their owners still hold: grants them to the first in their queues, or notifies that they are free. Owners
-- that do not hold their key give up their place in its queue.
-- Keys of each: lock, fence, queue. Arguments of each: owner.
-- Answers, in one text each: held (until now), and what the server refused to do for the waiters · gone · refused, reply.
-- Invariant: a server that refuses to read the queue or to publish still releases; the waiters are served when one asks.

-- One key that somebody waits for, or that the owner does not hold.
local function give_back(lock, fence, line, owner)
  local line_up, held = queues(), redis.pcall('GET', lock)
  if refusal(held, 'GET') then
    return refusal(held, 'GET')
  end
  if type(held) ~= 'string' or string.sub(held, 1, 32) ~= owner then
    local refused = line_up.leave(line, owner)
    if not refused and not held then
      line_up.serve(lock, fence, line)
    end
    return refused or 'gone'
  end
  local outcome, why, _, refused = line_up.serve(lock, fence, line)
  if outcome ~= 'served' then
    local deleted = redis.pcall('DEL', lock)
    if refusal(deleted, 'DEL') then
      return refusal(deleted, 'DEL')
    end
    -- The channel of the key has the name of its lock but for the last part.
    local told = redis.pcall('PUBLISH', string.gsub(lock, 'lock$', 'freed'), '1')
    refused = outcome == 'failed' and why ~= 'soon' and why or refusal(told, 'PUBLISH')
  end
  return refused and 'held ' .. refused or 'held'
end

local function release(count, k, a)
  local locks = {}
  for i = 1, count do
    locks[i] = KEYS[k + 3 * i - 2]
  end
  local known = expect(redis.pcall('MGET', unpack(locks)), 'MGET')

  -- Nobody waits for those that are freed here, all at once.
  local answers, freed = {}, {}
  for i = 1, count do
    local held = known[i]
    if held and string.sub(held, 1, 32) == ARGV[a + i] and not is_waited_for(held) and not freed[locks[i]] then
      freed[#freed + 1], freed[locks[i]] = locks[i], true
      answers[i] = 'held'
    end
  end
  local deleted = freed[1] and redis.pcall('DEL', unpack(freed))
  local refused = refusal(deleted, 'DEL')
  for i = 1, count do
    if not answers[i] then
      answers[i] = alone(give_back, locks[i], KEYS[k + 3 * i - 1], KEYS[k + 3 * i], ARGV[a + i])
    elseif refused then
      answers[i] = refused
    end
  end
  return answers
end

return release(#KEYS / 3, 0, 0)
