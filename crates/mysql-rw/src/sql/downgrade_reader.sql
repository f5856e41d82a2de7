-- Adds the row of the reader that a writer is about to become, marked as ended, by itself: it holds nothing, and is in nobody's
-- way, until downgrade.sql takes the mark off.
-- In: :name, :owner, :epoch, :ttl (microseconds), :label, :reason.
INSERT INTO {readers} (name, owner, epoch, expires_at, acquired_at, label, reason, forced)
VALUES (:name, :owner, :epoch, UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND, UTC_TIMESTAMP(6), :label, :reason, :owner)
ON DUPLICATE KEY UPDATE epoch = :epoch
