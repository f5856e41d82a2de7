-- Answers who holds the keys of a chunk, in the order of the names: at most a page of 100, and one more.
-- In: :from, :to, :after, :upto, the bounds of the chunk. Out: the columns of inspect.sql.
SELECT name, epoch, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), label, reason FROM {table}
WHERE name >= :from AND name < :to AND name > :after AND name <= :upto AND expires_at > UTC_TIMESTAMP(6)
ORDER BY name LIMIT 101
