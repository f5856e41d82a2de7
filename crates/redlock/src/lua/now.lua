-- The clock of this node.
-- Answers: now, ms.
local time = redis.call('TIME')
return { 'now', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)) }
