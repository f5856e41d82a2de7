-- Answers the free keys of a chunk whose last grant is longer ago than :age.
-- In: :from, :to, :after, :upto, the bounds of the chunk; :age in milliseconds. Out: the names.
-- The epoch itself says when the last grant was: it is at least the time of the grant in milliseconds, and more on a key
-- that is granted more than a thousand times a second. Once the server's clock is past the epoch by :age, the clock alone
-- seeds a larger one, so that tokens keep growing without the row.
SELECT name FROM {table}
WHERE name >= :from AND name < :to AND name > :after AND name <= :upto AND expires_at <= UTC_TIMESTAMP(6)
  AND tenure + :age < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000
