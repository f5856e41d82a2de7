-- Runs of script functions, one after the other. A run is one function for one or several locks.
-- Keys: those of the first lock of the first run, of the second, … Arguments of a run: the name of the function, how many locks,
-- what the locks have in common, and what each has of its own.
-- Answers one text, with a line for each lock: what the function answers · refused, reply.
-- In front of this stands `find`: for a name how many keys, common and own arguments its function takes, the function, and whether
-- it is one for many locks. It takes behind how many keys and arguments its own begin; and one for many locks, in front of that, how
-- many there are. What that raises is the answer for the whole run.
local lines, k, a, words = {}, 0, 0, #ARGV
while a < words do
  local count = tonumber(ARGV[a + 2])
  local keys, common, own, step, for_many = find(ARGV[a + 1])
  local done, answers = true, {}
  if for_many then
    done, answers = pcall(step, count, k, a + 2)
  else
    for i = 1, count do
      answers[i] = alone(step, k + keys * (i - 1), a + 2 + own * (i - 1))
    end
  end
  k, a = k + keys * count, a + 2 + common + own * count
  if done and count == 1 and a == words and not lines[1] then
    return answers[1]
  end
  for i = 1, count do
    lines[#lines + 1] = done and answers[i] or refused(answers)
  end
end
return table.concat(lines, '\n')
