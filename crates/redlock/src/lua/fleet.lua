-- One batch of a fleet of nodes: releases, and then the first round of claims, each as if it were alone.
-- Keys: marker; lock of each release; fence of each claim where grants have numbers; lock of each claim; forced of each release.
-- Arguments: how many releases, proposal (0: none; -: the grants have no number), lifetime of a counter in ms; the owner of each
-- release; owner (32 hex digits) of each claim, and where they are not those of the claim before it, divided by spaces, lease in
-- ms and metadata (what follows the first member of a JSON object).
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
local claims = #ARGV - 3 - releases
local fenced = proposal ~= '-'
local answers = {}
-- The places of what is not read at once.
local locks = 1 + releases + (fenced and claims or 0)
local forced = locks + claims

-- The texts under the first keys: false where there is none, or an entry of another type.
local done, texts = pcall(call, 'MGET', unpack(KEYS, 1, locks))
if not done then
  for i = 1, releases + claims do
    answers[i] = refused(texts)
  end
  return { '0', table.concat(answers, '\n') }
end

if releases > 0 then
  local ours = {}
  for i = 1, releases do
    local held, owner = texts[1 + i], ARGV[3 + i]
    if held and string.find(held, owner, 1, true) == 1 then
      ours[#ours + 1] = KEYS[1 + i]
      answers[i] = 'held'
    else
      answers[i] = redis.pcall('GET', KEYS[forced + i]) == owner and 'forced' or 'gone'
    end
  end
  local kept = ours[1] and refusal('DEL', unpack(ours))
  for i = 1, releases do
    if answers[i] == 'held' then
      local untold = not kept and refusal('PUBLISH', string.sub(KEYS[1 + i], 1, -5) .. 'freed', '1')
      answers[i] = kept or (untold and 'held ' .. untold) or 'held'
    end
  end
end
if claims == 0 then
  return { '0', table.concat(answers, '\n') }
end

local now, since, begun
local function begin()
  since, now = in_service_since(KEYS[1], texts[1]), node_clock()
  begun = string.format(' {"since":%.0f', math.floor(now / 16))
end
local out_of_service = alone(begin)

-- What is said to a claim of a key that is not free, whose grant has this floor.
local function taken(lock, owner, floor)
  local held = call('GET', lock)
  if not held then
    raise('refused it was there and is not')
  elseif string.sub(held, 1, 32) == owner then
    return 'granted ' .. floor .. ' ' .. (string.match(held, '^%x+ (%d+)') or '-')
  end
  local left = call('PTTL', lock)
  if left < 0 then
    return 'endless ' .. lock
  end
  -- No attempt takes a quarter of a second.
  local begun = string.match(held, '^%x+ %d+ {"since":(%d+)')
  local how = begun and now / 16 - begun > 250 and 'taken ' or 'claimed '
  return how .. string.format('%.0f', left) .. ' ' .. (string.match(held, '^%x%x%x%x%x%x%x%x') or 'foreign')
end

local proposed = fenced and tonumber(proposal) or 0

-- The first round of one claim.
local function claim(i, owner, lease, metadata)
  local lock, floor, number = KEYS[locks + i], '0', '-'
  local fence, last = KEYS[1 + releases + i], texts[1 + releases + i]
  if fenced then
    local least = floor_of(fence, last, since)
    floor = least > since and last or string.format('%.0f', since)
    if proposed > least and proposed <= now then
      number = proposal
    end
  end
  if not call('SET', lock, owner .. ' ' .. number .. begun .. metadata, 'NX', 'PX', lease) then
    return taken(lock, owner, floor)
  end
  local counted = number ~= '-' and redis.pcall('SET', fence, number, 'PX', lifetime)
  if counted and counted.err then
    redis.pcall('DEL', lock)
    expect(counted, 'SET')
  end
  return 'granted ' .. floor .. ' ' .. number
end

local lease, metadata
for i = 1, claims do
  local owner = ARGV[3 + releases + i]
  -- Of a claim that is refused, too: the next one may have the same.
  if #owner > 32 then
    owner, lease, metadata = string.match(owner, '^(%x+) (%d+) (.*)$')
  end
  answers[releases + i] = now and alone(claim, i, owner, lease, metadata) or out_of_service
end
return { string.format('%.0f', now or 0), table.concat(answers, '\n') }
