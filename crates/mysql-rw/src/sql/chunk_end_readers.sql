-- Answers the last name of the next chunk of a scan, which has 5,000 rows of the table of readers.
-- In: :from, :to, :after. Out: the name; no row if fewer rows are left.
SELECT name FROM {readers}
WHERE name >= :from AND name < :to AND name > :after
ORDER BY name LIMIT 1 OFFSET 4999
