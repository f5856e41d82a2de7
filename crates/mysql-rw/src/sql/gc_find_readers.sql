-- Answers the readers of a chunk whose lease ran out longer ago than :age, and that no writer had a reason to delete.
-- In: :from, :to, :after, :upto, the bounds of the chunk; :age in microseconds. Out: name and owner.
SELECT name, owner FROM {readers}
WHERE name >= :from AND name < :to AND name > :after AND name <= :upto
  AND expires_at + INTERVAL :age MICROSECOND < UTC_TIMESTAMP(6)
