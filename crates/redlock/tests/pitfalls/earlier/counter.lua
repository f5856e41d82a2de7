-- What is wrong with the text of a counter; nothing if it is a counter. From 2^43 - 1 on, in the year 2248, no number above it
-- makes a token.
local function no_counter(last)
  if #last > 15 or not string.match(last, '^%d+$') then
    return 'not a counter'
  end
  if tonumber(last) >= 8796093022207 then
    return 'a counter beyond the year 2248'
  end
end
