-- Proves: the old writer still held the key. Gives it to the new owner and prolongs the lease, but never shortens it.
-- In: :name, :owner (the old one), :epoch, :new_owner, :ttl (microseconds). Out: one changed row, or none.
-- Of several owners that try, one finds the old owner.
UPDATE {locks} FORCE INDEX (PRIMARY)
SET
  writer = :new_owner,
  writer_expires_at = GREATEST(writer_expires_at, UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND)
WHERE name = :name AND writer = :owner AND written = :epoch AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6)
