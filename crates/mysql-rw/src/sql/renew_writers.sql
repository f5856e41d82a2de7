-- Proves: each of these writers still holds its key. Prolongs their leases, and never shortens one.
-- In: name and owner of each row, and its lease in microseconds. Out: the number of changed rows.
UPDATE {locks} FORCE INDEX (PRIMARY)
SET writer_expires_at = GREATEST(writer_expires_at, UTC_TIMESTAMP(6) + INTERVAL {micros of CONCAT(name, writer)} MICROSECOND)
WHERE ({any name = ? AND writer = ?}) AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6)
