-- EXTEND, for writers: prolongs what is still its owner's, and never shortens.
UPDATE {locks}
SET writer_expires_at = GREATEST(writer_expires_at, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
WHERE (name, writer) IN ({pairs}) AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6)
