local functions = {}
functions['try_acquire'] = { try_acquire, 3, 5 }
functions['release'] = { release, 3, 2 }
-- Several script functions in one call, each as if it were alone.
-- Keys: those of the first, of the second, … Arguments: name and arguments of the first, of the second, …
-- Answers, one text for each: what the function answers · refused, reply.
-- In front of this stands `functions`: for each name its function, and how many keys and arguments it takes. What one
-- raises does not touch the others.
local answers, k, a = {}, 0, 0
while a < #ARGV do
  local called = functions[ARGV[a + 1]]
  local done, answer = pcall(called[1], k, a + 1)
  if not done then
    answer = 'refused ' .. (type(answer) == 'table' and answer.err or answer)
  end
  answers[#answers + 1] = answer
  k, a = k + called[2], a + 1 + called[3]
end
return answers
