-- Proves: this writer still held the key. Frees the key and makes a holder of its reader, at one moment: in two, others would see
-- both, or find a reader of a writer that was released in between.
-- In: :name, :writer, :owner (of the reader), :ttl (microseconds). Out: changed rows, or none if the writer does not hold the key.
-- The row of the key is locked first, as by claims and admissions.
UPDATE {locks} AS l STRAIGHT_JOIN {readers} AS r
SET l.writer = NULL,
  r.forced = NULL, r.expires_at = UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND, r.acquired_at = UTC_TIMESTAMP(6)
WHERE l.name = :name AND l.writer = :writer AND l.waiting IS NULL AND l.writer_expires_at > UTC_TIMESTAMP(6)
  AND r.name = :name AND r.owner = :owner AND r.forced = :owner
