-- Reads the clock of this node.
-- Answers: now, ms · refused, reply.
local time = call('TIME')
return { 'now', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)) }
