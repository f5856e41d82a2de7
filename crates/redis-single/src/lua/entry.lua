-- The entry of a key that is held, which `try_acquire.lua` and `release.lua` share: owner, epoch, metadata.

-- The end of an entry for whose lock somebody waits, or may: behind the JSON it means nothing. An entry without it is released
-- without a look at the queue.
local WAITED_FOR = ' '

local function is_waited_for(held)
  return string.sub(held, -1) == WAITED_FOR
end

-- Grants a key that no other owner may have, with the next epoch of its counter.
-- Answers: granted, epoch · soon. Raises: spent, key · foreign, key, type · refused, reply.
-- The counter is written before the lock, so that a holder always has an epoch above all earlier ones.
local function grant(lock, fence, owner, lease, metadata)
  local number = draw(fence)
  if not number then
    return 'soon'
  end
  call('SET', lock, owner .. ' ' .. number .. ' ' .. since() .. metadata, 'PX', lease)
  return 'granted ' .. number
end

-- The same, to the first in the queue.
local function grant_waiter(lock, fence, owner, lease, metadata)
  return grant(lock, fence, owner, lease, metadata .. WAITED_FOR)
end

-- Writes into the entry of a lock that somebody waits, so that its release looks for waiters. What Leasehold did not write stays as
-- it is.
local function wait_for(lock, held)
  if string.match(held, '^%x+ %S+ ') and not is_waited_for(held) then
    call('SET', lock, held .. WAITED_FOR, 'KEEPTTL')
  end
end

