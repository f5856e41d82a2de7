-- Answers the free keys of a chunk whose last grant is longer ago than :age.
-- In: :from, :to, :after, :upto, the bounds of the chunk; :age in sixteenths of a millisecond. Out: the names.
-- The epoch itself says when the last grant was: it is at least the server's clock at that moment. Once the clock is past it,
-- the clock alone seeds a larger one, so that tokens keep growing without the row.
SELECT name FROM {table}
WHERE name >= :from AND name < :to AND name > :after AND name <= :upto AND expires_at <= UTC_TIMESTAMP(6)
  AND epoch + :age < {clock}
