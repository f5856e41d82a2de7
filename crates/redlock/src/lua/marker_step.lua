-- Reads or changes the marker of this node, `2 PHASE INCARNATION SINCE`: `new` while a deployment is set up, `healing` while
-- counters are copied to a node that lost them, `up` in service, since this moment by the node's clock. 2 is the version of
-- what the nodes keep.
-- Keys: marker. Arguments: step, incarnation for a node that has none.
-- Steps: look · begin (a node without a marker becomes new) · finish (a new node goes into service) · heal (a node without
-- a marker, or one that its healer has left, is healing from now on, by us; a healer says so each second) · healed (a node that
-- is still healing, by us, goes into service).
-- Answers: none, new, healing or up; incarnation; run id of the server, empty if the user may not read it; clock · version, key,
-- number (the marker is of another version) · foreign, key, type · refused, reply.
local marker, step, incarnation = KEYS[1], ARGV[1], ARGV[2]

local mark = call('GET', marker) or '2 none  0'
local version = string.match(mark, '^(%d+) %l+ ')
if version and version ~= '2' then
  return 'version ' .. marker .. ' ' .. version
end
local state, known, since = string.match(mark, '^2 (%l+) (%x*) (%d+)$')
if not state then
  return 'foreign ' .. marker .. ' not a marker'
end
local now = node_clock()

-- 3 s; a healing in the future was begun by a clock that has been set back.
local is_left = now - tonumber(since) > 48000 or now < tonumber(since)

local after = nil
if step == 'begin' and state == 'none' then
  after, known = 'new', incarnation
elseif step == 'finish' and state == 'new' then
  after = 'up'
elseif step == 'heal' and (state == 'none' or state == 'healing' and (known == incarnation or is_left)) then
  after, known = 'healing', incarnation
elseif step == 'healed' and state == 'healing' and known == incarnation then
  after = 'up'
end
if after then
  call('SET', marker, string.format('2 %s %s %.0f', after, known, now))
  state = after
end

local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
return { state, known, run, string.format('%.0f', now) }
