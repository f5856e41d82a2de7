-- The answer for a step that Redis refused with this reply: foreign, key, type · refused, reply.
local function trouble(key, reply)
  if string.sub(reply, 1, 9) ~= 'WRONGTYPE' then
    return 'refused ' .. reply
  end
  local kind = redis.pcall('TYPE', key)
  return 'foreign ' .. key .. ' ' .. (kind.ok or '')
end

