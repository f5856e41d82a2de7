-- Makes a reader of the writer that still holds the key under its epoch, and grants the key to the readers at the head of its queue.
-- Keys: lock, counter, queue, readers. Arguments: the writer's owner, its epoch, the reader's owner, lease in ms, metadata (what follows the first member of a JSON object).
-- Answers: granted, epoch · gone · spent, key · foreign, key, type · refused, reply.
-- Invariant: no moment without a holder; the reader's epoch is above the writer's, also where the counter is gone, and may be one
-- more ahead of the clock than that of a claim. The next claim waits for the clock.
local lock, fence, line = KEYS[1], KEYS[2], KEYS[3]
local writer, epoch, owner, lease, metadata = unpack(ARGV)

local field, _, number = held_by(lock, writer)
if field ~= 'writer' or number ~= epoch then
  return 'gone'
end
local next_number = draw(fence, epoch)
local entry = entry_of(clock() + lease, owner, next_number, since() .. metadata)
call('HSET', lock, 'writer', '-', owner, entry)
local prolonged = alone(prolong, lock, lease)
serve_waiters(lock, fence, line)
return prolonged == 'held' and 'granted ' .. next_number or prolonged
