-- Several steps in one go, each as if it were alone.
-- Keys: those of the first, of the second, … Arguments: name and arguments of the first, of the second, …
-- Answers, one text for each: what the step answers · refused, reply.
-- In front of this stands `steps`: for each name its function, and how many keys and arguments it takes. What one
-- raises does not touch the others.
local answers, k, a = {}, 0, 0
while a < #ARGV do
  local step = steps[ARGV[a + 1]]
  local done, answer = pcall(step[1], k, a + 1)
  if not done then
    answer = 'refused ' .. (type(answer) == 'table' and answer.err or answer)
  end
  answers[#answers + 1] = answer
  k, a = k + step[2], a + 1 + step[3]
end
return answers
