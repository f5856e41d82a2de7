-- Whether it is a number that a counter draws. What has another one was written by somebody else.
local function is_number(tenure)
  return tenure and string.match(tenure, '^%d+$') and tonumber(tenure) < 9007199254740992
end

