-- One batch of a fleet of nodes: releases, and then the first round of claims, each as if it were alone.
-- Keys: marker; lock and forced of each release; lock, and fence where the grant has a number, of each claim. Arguments: how
-- many releases, proposal (0: none; -: the grants have no number), lifetime of a counter in ms; the owner of each release; owner
-- (32 hex digits), lease in ms and metadata (what follows the first member of a JSON object) of each claim, divided by spaces.
-- Answers: clock, and one line for each. Without keys: loaded.
-- Of a release: held, and what the server refused to do for the waiters · gone · forced · refused, reply. Of a claim: granted,
-- floor and the owner's number or - · taken, ms left, first digits of the owner that has it · claimed, and the same of an owner
-- that may be in the midst of its attempt · reset · endless, key · foreign, key, type · refused, reply.
-- Invariant: a number is strictly above all that this node took before, and not ahead of its clock, so that a node that forgot
-- its counters goes on from its clock. No lock stays with a number whose counter was not written: it could be given twice. An
-- owner that asks again gets the same answer and no longer lease. A release leaves the counter.
if #KEYS == 0 then
  return { 'loaded' }
end
local releases, proposal, lifetime = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local answers = {}

-- The texts under these keys: false where there is none, or an entry of another type.
local function texts(keys)
  if #keys == 0 then
    return {}
  end
  return redis.pcall('MGET', unpack(keys))
end

local function released()
  local locks, ours, places = {}, {}, {}
  for i = 1, releases do
    locks[i] = KEYS[2 * i]
  end
  local held = texts(locks)
  for i = 1, releases do
    local owner = ARGV[3 + i]
    if held.err then
      answers[i] = refusal(held, 'MGET')
    elseif held[i] and string.sub(held[i], 1, 32) == owner then
      ours[#ours + 1], places[#places + 1] = locks[i], i
    else
      answers[i] = redis.pcall('GET', KEYS[2 * i + 1]) == owner and 'forced' or 'gone'
    end
  end
  if #ours == 0 then
    return
  end
  local refused = refusal(redis.pcall('DEL', unpack(ours)), 'DEL')
  for place, i in ipairs(places) do
    local channel = string.gsub(ours[place], ':lock$', ':freed')
    local untold = not refused and refusal(redis.pcall('PUBLISH', channel, '1'), 'PUBLISH')
    answers[i] = refused or (untold and 'held ' .. untold or 'held')
  end
end

-- What is said to another than the owner of the entry.
local function taken(lock, held, now)
  local left = redis.pcall('PTTL', lock)
  if refusal(left, 'PTTL') then
    return refusal(left, 'PTTL')
  elseif left < 0 then
    return 'endless ' .. lock
  end
  -- No attempt takes a quarter of a second.
  local begun = string.match(held, '^%x+ %d+ {"since":(%d+)')
  local how = begun and now / 16 - begun > 250 and 'taken ' or 'claimed '
  return how .. string.format('%.0f', left) .. ' ' .. (string.match(held, '^%x%x%x%x%x%x%x%x') or 'foreign')
end

local function claimed(lock, fence, last, words, now, since)
  local owner, lease, metadata = string.match(words, '^(%x+) (%d+) (.*)$')
  local floor, wrong = 0, nil
  if fence then
    floor, wrong = floor_of(fence, last, since)
    if not floor then
      return wrong
    end
  end
  local wanted = fence and tonumber(proposal) or 0
  local number = wanted > floor and wanted <= now and proposal or '-'
  local entry = owner .. ' ' .. number .. string.format(' {"since":%.0f', math.floor(now / 16)) .. metadata
  local written = redis.pcall('SET', lock, entry, 'NX', 'PX', lease)
  if refusal(written, 'SET') then
    return refusal(written, 'SET')
  end
  local told = string.format('granted %.0f ', floor)
  if not written then
    local held = redis.pcall('GET', lock)
    if type(held) ~= 'string' then
      return script_error(lock, held and held.err or 'it was there and is not')
    end
    if string.sub(held, 1, 32) ~= owner then
      return taken(lock, held, now)
    end
    return told .. (string.match(held, '^%x+ (%d+)') or '-')
  end
  if number ~= '-' then
    written = redis.pcall('SET', fence, number, 'PX', lifetime)
    if refusal(written, 'SET') then
      redis.pcall('DEL', lock)
      return refusal(written, 'SET')
    end
  end
  return told .. number
end

local function claims()
  local width = proposal == '-' and 1 or 2
  local first, count = 2 * releases + 2, #ARGV - 3 - releases
  if count == 0 then
    return 0
  end
  local since, wrong = in_service_since(KEYS[1])
  local now = nil
  if since then
    now, wrong = node_clock()
  end
  local fences, last = {}, {}
  if now and width == 2 then
    for i = 1, count do
      fences[i] = KEYS[first + 2 * i - 1]
    end
    last = texts(fences)
    wrong = refusal(last, 'MGET')
  end
  for i = 1, count do
    local lock = KEYS[first + width * (i - 1)]
    answers[releases + i] = wrong or claimed(lock, fences[i], last[i], ARGV[3 + releases + i], now, since)
  end
  return now or 0
end

released()
local now = claims()
return { string.format('%.0f', now), table.concat(answers, '\n') }
