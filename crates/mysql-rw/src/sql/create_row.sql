-- Adds the row of a key that is used for the first time, or for the first time after its row was deleted. No effect on a
-- row that exists.
-- In: :name. Epoch and `written` begin so that the first grant is a millisecond ahead of the server's clock. A deleted row
-- took the epochs of its writers with it: no epoch that was drawn before may be admitted any more, because it could be
-- smaller than theirs.
INSERT INTO {locks} (name, epoch, written, verdict, writer_expires_at, readers_wait_until, readers_turn_until, acquired_at)
VALUES (
  :name,
  {clock} + 15, {clock} + 15, 0,
  '2000-01-01', '2000-01-01', '2000-01-01', '2000-01-01'
)
ON DUPLICATE KEY UPDATE epoch = epoch
