-- Proves: each of these owners still holds its key. Prolongs their leases; a lease that ran out stays over.
-- In: name and owner of each row, and its lease in microseconds. Out: the number of changed rows.
-- It never shortens a lease: of two renewals that arrive out of order, the caller was promised the later end.
UPDATE {table} FORCE INDEX (PRIMARY)
SET expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL {micros of CONCAT(name, owner)} MICROSECOND)
WHERE ({any name = ? AND owner = ?}) AND expires_at > UTC_TIMESTAMP(6)
