-- Answers who holds the keys in a range of names, as the view does, in the order of the names; of the first 5,000 keys. A last row
-- without an epoch is the last of these, if there are more.
-- In: the first name, the name behind the last, and the name after which to begin.
WITH chunk AS MATERIALIZED (
  SELECT l.name FROM {schema}.locks AS l WHERE l.name >= $1 AND l.name < $2 AND l.name > $3 ORDER BY l.name OFFSET 4999 LIMIT 1
)
SELECT h.* FROM {schema}.holders AS h
WHERE h.name >= $1 AND h.name < $2 AND h.name > $3 AND h.name <= coalesce((SELECT name FROM chunk), $2)
UNION ALL
SELECT name, NULL, NULL, NULL, NULL, NULL FROM chunk
ORDER BY 1, 3 NULLS LAST
