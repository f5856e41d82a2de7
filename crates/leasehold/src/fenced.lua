-- Writes fields of a hash, unless the hash has seen a larger fencing token. One key, so that it works in a Cluster too.
-- KEYS[1]: the hash. ARGV[1]: the token. ARGV[2], ARGV[3] and so on: field, value, field, value.
-- Answers the largest token that the hash has seen: the caller's own if the fields were written.

-- Lua's numbers are exact below 2^53. Digits alone: a token that was rounded on its way, such as 1.83853e+15, is another one.
local function token_of(text)
  local number = string.match(text, '^%d+$') and tonumber(text)
  return number and number < 2 ^ 53 and number or nil
end

local token = token_of(ARGV[1] or '')
if not token or #ARGV < 3 or #ARGV % 2 == 0 then
  return redis.error_reply('ERR a fenced write takes a token below 2^53 and pairs of field and value')
end
local stored = redis.call('HGET', KEYS[1], 'fence')
local seen = token_of(stored or '0')
if not seen then
  return redis.error_reply('ERR the field fence of this hash is no token')
end
if seen > token then
  return seen
end
-- The fence last: it counts although a field of the caller has the same name.
local fields = { unpack(ARGV, 2) }
fields[#fields + 1] = 'fence'
fields[#fields + 1] = string.format('%.0f', token)
redis.call('HSET', KEYS[1], unpack(fields))
return token
