-- EXTEND prolongs what is still its owner's, and never shortens: of two renewals that arrive out of order, the later
-- one was promised. It brings nothing back that ran out.
UPDATE {table}
SET expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)
WHERE (name, owner) IN ({pairs}) AND expires_at > UTC_TIMESTAMP(6)
