-- What every script begins with: how it runs commands, and what it answers where the server refuses one.

-- Ends a function, and those that called it, with this answer.
local function raise(answer)
  error({ answer = answer }, 0)
end

local function is_foreign(reply)
  return type(reply) == 'table' and string.sub(reply.err or '', 1, 9) == 'WRONGTYPE'
end

-- A reply that is no refusal. With the command's name, because Redis 7.0 does not say which one a user may not run.
local function expect(reply, command)
  if type(reply) == 'table' and reply.err then
    raise('refused ' .. reply.err .. ' (' .. command .. ')')
  end
  return reply
end

-- The reply to a command. Raises: foreign, key, type · refused, reply.
local function call(command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) == 'table' and reply.err then
    if is_foreign(reply) then
      local key = ...
      raise('foreign ' .. key .. ' ' .. (redis.pcall('TYPE', key).ok or ''))
    end
    expect(reply, command)
  end
  return reply
end

-- The reply to a command; nil, which is not the false of an entry that is not there, for an entry of another type: what
-- somebody else wrote under our name is none of ours. Raises: refused, reply.
local function read(command, ...)
  local reply = redis.pcall(command, ...)
  if type(reply) == 'table' and reply.err then
    return not is_foreign(reply) and expect(reply, command) or nil
  end
  return reply
end

-- The answer for what a function raised.
local function refused(raised)
  local what = type(raised) == 'table' and raised or { err = tostring(raised) }
  return what.answer or 'refused ' .. string.gsub(what.err, '\n', ' ')
end

-- Calls a function for one lock, so that what it raises touches no other.
local function alone(f, ...)
  local done, answer = pcall(f, ...)
  return done and answer or refused(answer)
end

-- Runs a command without which the step is done all the same. Answers what the server refused, if anything.
local function refusal(...)
  local done, raised = pcall(call, ...)
  return not done and refused(raised) or nil
end

