-- Prolongs leases, each only if the session still holds the key in the same epoch.
-- Keys: the locks. Arguments: session; epoch and lease in ms of each.
-- Answers, one for each: held · gone · refused and the reply.
-- Invariant: never creates an entry, never shortens a lease (another level may have asked for a longer one), and what happens
-- to one key does not touch another.
local session = ARGV[1]

local function renew(lock, epoch, lease)
  local held = read('HMGET', lock, 'owner', 'epoch')
  if not held or held[1] ~= session or held[2] ~= epoch then
    return 'gone'
  end
  return prolong(lock, lease)
end

local answers = {}
for i, lock in ipairs(KEYS) do
  answers[i] = alone(renew, lock, ARGV[2 * i], ARGV[2 * i + 1])
end
return answers
