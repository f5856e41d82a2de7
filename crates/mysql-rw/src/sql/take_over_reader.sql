-- Proves: the old reader still held the key. Gives its row to the new owner and prolongs the lease, but never shortens it.
-- In: :name, :owner (the old one), :epoch, :new_owner, :ttl (microseconds). Out: one changed row, or none.
UPDATE {readers} FORCE INDEX (PRIMARY)
SET owner = :new_owner, expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND)
WHERE name = :name AND owner = :owner AND epoch = :epoch AND forced IS NULL AND expires_at > UTC_TIMESTAMP(6)
