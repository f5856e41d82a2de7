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

-- A reply that is no refusal. Raises what the server refused, for all locks of a run.
local function expect(reply, command)
  if type(reply) == 'table' and reply.err then
    error(reply.err .. ' (' .. command .. ')', 0)
  end
  return reply
end

-- The answer for what a function raised.
local function refused(raised)
  return 'refused ' .. string.gsub(type(raised) == 'table' and raised.err or tostring(raised), '\n', ' ')
end

-- Calls a function for one lock, so that what it raises touches no other.
local function alone(call, ...)
  local done, answer = pcall(call, ...)
  return done and answer or refused(answer)
end

-- Makes the function of a run from one for a single lock: of so many keys and arguments, behind the first `k` and `a`.
local function for_each(call, keys, arguments)
  return function(count, k, a)
    local answers = {}
    for i = 1, count do
      answers[i] = alone(call, k + keys * (i - 1), a + arguments * (i - 1))
    end
    return answers
  end
end

