-- TAKE_OVER gives the key to a new owner, if the old one still has it, and prolongs the lease, and never shortens it. Of
-- several who try one finds the old owner. Nothing else of the row changes.
UPDATE {table} FORCE INDEX (PRIMARY)
SET owner = :new_owner, expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND)
WHERE name = :name AND owner = :owner AND tenure = :epoch AND expires_at > UTC_TIMESTAMP(6)
