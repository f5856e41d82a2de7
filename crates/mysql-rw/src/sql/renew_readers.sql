-- Proves: each of these readers still holds its key. Prolongs their leases, and never shortens one. A row that was deleted
-- stays away.
-- In: name and owner of each row, and its lease in microseconds. Out: the number of changed rows.
UPDATE {readers} FORCE INDEX (PRIMARY)
SET expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL {micros of CONCAT(name, owner)} MICROSECOND)
WHERE ({any name = ? AND owner = ?}) AND forced IS NULL AND expires_at > UTC_TIMESTAMP(6)
