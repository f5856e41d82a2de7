-- EXTEND, for readers: prolongs what is still its owner's, and never shortens. A row that was purged stays away.
UPDATE {readers} FORCE INDEX (PRIMARY)
SET expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL {micros of CONCAT(name, owner)} MICROSECOND)
WHERE ({any name = ? AND owner = ?}) AND forced = 0 AND expires_at > UTC_TIMESTAMP(6)
