-- Reads or changes the marker of this node: `new INCARNATION` while a deployment is set up, `healing INCARNATION` while
-- counters are copied to a node that lost them, `up INCARNATION` in service.
-- Keys: marker. Arguments: step, incarnation for a node that has none.
-- Steps: look · begin (a node without a marker becomes new) · finish (a new node goes into service) · heal (a node without
-- a marker is healing from now on, by us) · healed (a node that is still healing, by us, goes into service).
-- Answers: none, new, healing or up; incarnation; run id of the server, empty if the user may not read it · foreign, key,
-- type · refused, reply.
local marker, step, incarnation = KEYS[1], ARGV[1], ARGV[2]

local mark = redis.pcall('GET', marker)
if type(mark) == 'table' then
  if string.sub(mark.err, 1, 9) ~= 'WRONGTYPE' then
    return { 'refused', mark.err .. ' (GET)' }
  end
  local kind = redis.pcall('TYPE', marker)
  return { 'foreign', marker, kind.ok or '' }
end
local state, known = string.match(mark or 'none ', '^(%l+) (%x*)$')
if not state then
  return { 'foreign', marker, 'not a marker' }
end

local after = nil
if step == 'begin' and state == 'none' then
  after = 'new ' .. incarnation
elseif step == 'finish' and state == 'new' then
  after = 'up ' .. known
elseif step == 'heal' and (state == 'none' or state == 'healing') then
  after = 'healing ' .. incarnation
elseif step == 'healed' and state == 'healing' and known == incarnation then
  after = 'up ' .. known
end
if after then
  local written = redis.pcall('SET', marker, after)
  if written.err then
    return { 'refused', written.err .. ' (SET)' }
  end
  state, known = string.match(after, '^(%l+) (%x*)$')
end

local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
return { state, known, run }
