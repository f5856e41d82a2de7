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

