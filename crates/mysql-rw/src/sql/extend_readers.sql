-- EXTEND, for readers: prolongs what is still its owner's, and never shortens. A row that was purged stays away.
UPDATE {readers}
SET expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
WHERE (name, owner) IN ({pairs}) AND forced = 0 AND expires_at > UTC_TIMESTAMP(6)
