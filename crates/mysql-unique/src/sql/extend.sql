-- EXTEND prolongs what is still its owner's, and never shortens: of two renewals that arrive out of order, the later
-- one was promised. It brings nothing back that ran out.
UPDATE {table} FORCE INDEX (PRIMARY)
SET expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL {micros of CONCAT(name, owner)} MICROSECOND)
WHERE ({any name = ? AND owner = ?}) AND expires_at > UTC_TIMESTAMP(6)
