-- Frees a key whoever holds it, or ends one grant, and leaves word for the holders.
-- Keys: lock, forced, readers. Arguments: how many ms beyond the longest lease the word is kept, the epoch of the one grant, empty for
-- all; and the channel on which all processes hear that a lock was taken from its holder.
-- Answers as `holders_of`, what it was, of those whose grants it ended · foreign, key, type · refused, reply.
-- Never touches the counter. Where there is no room for the word, holders learn that they lost the key, not why.
local lock, forced, grace, only = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local holders = holders_of(lock)
if holders == 'free' then
  return holders
end
local ended, owners, longest = { 'held' }, {}, 0
for i = 2, #holders, 3 do
  local owner, epoch = string.match(holders[i + 2], '^(%x+) (%d+)')
  if only == '' or only == epoch then
    ended[#ended + 1], ended[#ended + 2], ended[#ended + 3] = holders[i], holders[i + 1], holders[i + 2]
    owners[#owners + 1] = owner
    longest = math.max(longest, tonumber(holders[i + 1]))
  end
end
if #owners == 0 then
  return 'free'
end
-- What was left for others who were ended one by one stays, up to a hundred owners.
local word = table.concat(owners, ' ')
local known, left = redis.pcall('GET', forced), redis.pcall('PTTL', forced)
if only ~= '' and type(known) == 'string' and type(left) == 'number' then
  word, longest = string.sub(known, -33 * 99 + 1) .. ' ' .. word, math.max(longest, left - tonumber(grace))
end
redis.pcall('SET', forced, word, 'PX', string.format('%d', longest + grace))
if only == '' or ended[2] == 'w' then
  call('DEL', lock, readers_of(lock))
else
  call('HDEL', lock, owners[1])
  -- What is left when no reader is: the field `writer`.
  if redis.pcall('HLEN', lock) == 1 then
    call('DEL', lock)
  end
end
-- They hear of it at their next renewal in any case.
redis.pcall('PUBLISH', ARGV[3], lock)
return ended
