-- EXTEND, for writers: prolongs what is still its owner's, and never shortens.
UPDATE {locks} FORCE INDEX (PRIMARY)
SET writer_expires_at = GREATEST(writer_expires_at, UTC_TIMESTAMP(6) + INTERVAL {micros of CONCAT(name, writer)} MICROSECOND)
WHERE ({any name = ? AND writer = ?}) AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6)
