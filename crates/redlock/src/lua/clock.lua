-- Reads the clock of this node.
-- Answers: now, ms · refused, reply.
local time = redis.pcall('TIME')
if time.err then
  return { 'refused', time.err .. ' (TIME)' }
end
return { 'now', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)) }
