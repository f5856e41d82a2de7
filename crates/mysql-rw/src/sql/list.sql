-- Answers the held keys of a chunk, in the order of the names: at most a page of 100, and one more.
-- In: :from, :to, :after, :upto, the bounds of the chunk. Out: the names.
SELECT name FROM {locks}
WHERE name >= :from AND name < :to AND name > :after AND name <= :upto
  AND writer IS NOT NULL AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6)
UNION
SELECT name FROM {readers}
WHERE name >= :from AND name < :to AND name > :after AND name <= :upto
  AND forced IS NULL AND expires_at > UTC_TIMESTAMP(6)
ORDER BY name LIMIT 101
