-- Takes an owner out of the holders of a key, or out of its queue, and grants the key to those who waited for that.
-- Keys: lock, counter, queue, readers. Argument: owner.
-- Answers, in one text: held (until now), and what the server refused to do for the waiters · gone · refused, reply.
-- Invariant: nobody else's entry is touched. A server that refuses to serve the queue still releases; the waiters ask.
local function release(k, a)
  local lock, fence, line, owner = KEYS[k + 1], KEYS[k + 2], KEYS[k + 3], ARGV[a + 1]
  local known = read('HMGET', lock, 'writer', owner) or {}
  local held = held_by(lock, owner, known)
  if string.match(known[1] or '', '^%d+ (%x+) ') == owner then
    call('DEL', lock)
  elseif known[2] then
    call('HDEL', lock, owner)
    local fields = redis.pcall('HLEN', lock)
    if fields == 1 then
      -- What is left when no reader is: the field `writer`.
      call('DEL', lock, readers_of(lock))
    elseif type(fields) == 'number' and fields > FEW then
      unlist(lock, { owner })
    end
  else
    queues().leave(line, owner)
  end
  local unserved = serve_waiters(lock, fence, line)
  return not held and 'gone' or unserved and 'held ' .. unserved or 'held'
end
