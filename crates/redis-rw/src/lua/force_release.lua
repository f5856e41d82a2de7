-- Frees a key whoever holds it, and leaves word for the holders.
-- Keys: lock, forced. Argument: how many ms beyond the longest lease the word is kept.
-- Answers as `holders_of`, what it was.
-- Never touches the counter. Where there is no room for the word, holders learn that they lost the key, not why.
local lock, forced, grace = KEYS[1], KEYS[2], ARGV[1]

local holders = holders_of(lock)
if holders[1] ~= 'held' then
  return holders
end
local owners, longest = {}, 0
for i = 2, #holders, 3 do
  owners[#owners + 1] = string.match(holders[i + 2], '^%x+')
  longest = math.max(longest, tonumber(holders[i + 1]))
end
redis.pcall('SET', forced, table.concat(owners, ' '), 'PX', string.format('%d', longest + grace))
return refusal(redis.pcall('DEL', lock), 'DEL') or holders
