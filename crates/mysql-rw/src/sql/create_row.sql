-- Adds the row of a key that is used for the first time, or for the first time after its row was deleted. No effect on a
-- row that exists.
-- In: :name. Epoch and `written` begin at the server's clock in milliseconds: a deleted row took the epochs of its writers
-- with it, so no epoch that was drawn before may be admitted any more. It could be smaller than theirs.
INSERT INTO {locks} (name, tenure, written, verdict, writer_expires_at, readers_wait_until, readers_turn_until, acquired_at)
VALUES (
  :name,
  TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000,
  TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000,
  0,
  '2000-01-01', '2000-01-01', '2000-01-01', '2000-01-01'
)
ON DUPLICATE KEY UPDATE tenure = tenure
