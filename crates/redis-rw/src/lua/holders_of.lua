-- Reads who holds a key. Answers: held, and of each holder its mode (`w` or `r`), the ms left of its lease, and owner, epoch and
-- metadata · free. Raises: foreign, key, type · refused, reply. Changes nothing.
local function holders_of(lock)
  local all = call('HGETALL', lock)
  local holders, ours = { 'held' }, #all == 0
  for i = 1, #all, 2 do
    local is_writer = all[i] == 'writer'
    local ends, owner, number, metadata = live(all[i + 1])
    ours = ours or is_writer
    if ends then
      holders[#holders + 1] = is_writer and 'w' or 'r'
      holders[#holders + 1] = string.format('%d', ends - clock())
      holders[#holders + 1] = owner .. ' ' .. number .. ' ' .. metadata
    end
  end
  if not ours then
    raise('foreign ' .. lock .. ' a hash of somebody else')
  end
  return #holders > 1 and holders or 'free'
end

