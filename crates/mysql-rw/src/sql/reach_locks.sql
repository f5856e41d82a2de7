-- REACH, in the table of the locks: finds the last name of the next stretch of a range. None: what is left of the range
-- is no longer than that.
SELECT name FROM {locks}
WHERE name >= :from AND name < :to AND name > :after
ORDER BY name LIMIT 1 OFFSET 4999
