-- Runs of script functions, one after the other. A run is one function for one or several locks.
-- Keys: those of the first lock of the first run, of the second, … Arguments of a run: the name of the function, how many locks,
-- what the locks have in common, and what each has of its own.
-- Answers one text, with a line for each lock: what the function answers · refused, reply.
-- In front of this stands `find`: for a name how many keys, common and own arguments its function takes, and the function; that
-- takes how many locks there are, and behind how many keys and arguments its own begin. What it raises is the answer for the
-- whole run.
local lines, k, a, words = {}, 0, 0, #ARGV
while a < words do
  local count = tonumber(ARGV[a + 2])
  local keys, common, own, call = find(ARGV[a + 1])
  local done, answers = pcall(call, count, k, a + 2)
  k, a = k + keys * count, a + 2 + common + own * count
  if done and count == 1 and a == words and not lines[1] then
    return answers[1]
  end
  for i = 1, count do
    lines[#lines + 1] = done and answers[i] or refused(answers)
  end
end
return table.concat(lines, '\n')
