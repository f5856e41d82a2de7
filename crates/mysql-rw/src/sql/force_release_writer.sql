-- Proves: the key's writer had this epoch until now. Frees the key, and notes the writer as released by force, so that its
-- next renewal is told.
-- In: :name, :written (the epoch that was seen). Out: one changed row or none.
UPDATE {locks} SET forced = writer, waiting = NULL, writer = NULL
WHERE name = :name AND written = :written AND writer IS NOT NULL
