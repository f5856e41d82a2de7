-- Grants a key to those at the head of its queue who can hold it together: a writer, or readers. The owner `asking` gets the lease
-- it asked for and no notification.
-- Answers as `serve` in `queue.lua`, once it grants nothing more, or failed; the epoch of `asking`, if it was served; and where it
-- failed, what the server refused.
local function serve(lock, fence, line, asking, lease)
  local mine
  -- One script can draw that many epochs, unless the clock was set back; those behind ask again.
  for _ = 1, 20 do
    -- What it raises comes after a release, or after a grant.
    local done, outcome, who, number, unserved = pcall(queues().serve, lock, fence, line, asking, lease)
    if not done then
      return 'failed', mine, refused(outcome)
    elseif outcome ~= 'served' then
      return outcome, mine
    end
    mine = who == asking and number or mine
    if unserved then
      return 'failed', mine, unserved
    end
  end
  return 'later', mine
end

-- The same for a key of which somebody leaves. Answers what the server refused to do for the waiters, if anything.
local function serve_waiters(lock, fence, line)
  if redis.pcall('EXISTS', line) ~= 0 then
    local _, _, unserved = serve(lock, fence, line)
    return unserved
  end
end

