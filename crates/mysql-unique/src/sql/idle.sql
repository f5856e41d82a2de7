-- IDLE finds the free keys of a stretch whose last grant is long ago. The epoch itself says so: it is at least
-- the time of the grant, and more on a key that is granted more than a thousand times a second. Once the clock is past
-- it by the retention, the clock alone seeds a larger one.
SELECT name FROM {table}
WHERE name >= :from AND name < :to AND name > :after AND name <= :upto AND expires_at <= UTC_TIMESTAMP(6)
  AND tenure + :age < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000
