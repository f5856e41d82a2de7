-- Proves: this writer still held the key. Draws one epoch for the reader that it becomes.
-- In: :name, :writer, :written (its epoch). Out, in the OK packet (LAST_INSERT_ID): the epoch, or zero if the writer does not
-- hold the key.
UPDATE {locks}
SET tenure = LAST_INSERT_ID(GREATEST(
  tenure + 1,
  CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 AS UNSIGNED)
))
WHERE name = :name AND writer = :writer AND written = :written AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6)
