-- Grants a key to those at the head of its queue who can hold it together: a writer, or readers. The owner `asking` gets the lease
-- it asked for and no notification.
-- Answers as `serve` in `queue.lua`, once it grants nothing more; and the epoch of `asking`, if it was served.
local function serve(lock, fence, line, asking, lease)
  local mine
  -- One script can draw that many epochs, unless the clock was set back; those behind ask again.
  for _ = 1, 20 do
    -- What it raises comes after a release, or after a grant.
    local done, outcome, who, number, unserved = pcall(queues().serve, lock, fence, line, asking, lease)
    if not done then
      return 'failed', refused(outcome), mine
    elseif outcome ~= 'served' then
      return outcome, who, mine
    end
    mine = who == asking and number or mine
    if unserved then
      return 'failed', unserved, mine
    end
  end
  return 'later', nil, mine
end

-- The same for a key of which somebody leaves. Answers what the server refused to do for the waiters, if anything.
local function serve_waiters(lock, fence, line)
  local waiting = redis.pcall('EXISTS', line)
  if waiting == 0 then
    return nil
  end
  local outcome, why = serve(lock, fence, line)
  return refusal(waiting, 'EXISTS') or outcome == 'failed' and why ~= 'taken' and why ~= 'soon' and why or nil
end

