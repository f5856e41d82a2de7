-- Runs of script functions, one after the other. A run is one function for one or several locks.
-- Keys: those of the first lock of the first run, of the second, … Arguments of a run: the name of the function, how many locks,
-- what the locks have in common, and what each has of its own.
-- Answers one text, with a line for each lock: what the function answers · refused, reply.
-- In front of this stands `functions`: for each name how many keys, common and own arguments it takes, and the function; it takes
-- how many locks there are, and behind how many keys and arguments its own begin. What it raises is the answer for the whole run.
local lines, k, a = {}, 0, 0
while a < #ARGV do
  local called, count = functions[ARGV[a + 1]], tonumber(ARGV[a + 2])
  local done, answers = pcall(called[4], count, k, a + 2)
  for i = 1, count do
    lines[#lines + 1] = done and answers[i] or refused(answers)
  end
  k, a = k + called[1] * count, a + 2 + called[2] + called[3] * count
end
return table.concat(lines, '\n')
