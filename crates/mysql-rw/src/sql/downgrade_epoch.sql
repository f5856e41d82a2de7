-- Proves: this writer still held the key. Draws one epoch for the reader that it becomes.
-- In: :name, :writer, :written (its epoch). Out, in the OK packet (LAST_INSERT_ID): the epoch, or zero if the writer does not
-- hold the key. It may be one more ahead of the clock than that of a claim may be: the next claim waits for the clock.
UPDATE {locks}
SET epoch = LAST_INSERT_ID(GREATEST(epoch + 1, {clock}))
WHERE name = :name AND writer = :writer AND written = :written AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6)
