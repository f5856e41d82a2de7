-- DRAW, for a writer that becomes a reader: one epoch, if it still holds.
UPDATE {locks}
SET tenure = LAST_INSERT_ID(GREATEST(
  tenure + 1,
  CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 AS UNSIGNED)
))
WHERE name = :name AND writer = :writer AND written = :written AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6)
