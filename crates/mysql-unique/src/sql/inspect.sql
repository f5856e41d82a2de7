-- Answers who holds the key.
-- In: :name. Out: name, epoch, the microseconds that are left of the lease, label, reason; no row if the key is free.
SELECT name, epoch, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), label, reason FROM {table}
WHERE name = :name AND expires_at > UTC_TIMESTAMP(6)
