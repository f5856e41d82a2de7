-- TAKE_OVER, for writers: gives the key to a new owner, if the old one still has it, and prolongs the lease, and never
-- shortens it. Of several who try one finds the old owner.
UPDATE {locks} FORCE INDEX (PRIMARY)
SET
  writer = :new_owner,
  writer_expires_at = GREATEST(writer_expires_at, UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND)
WHERE name = :name AND writer = :owner AND written = :epoch AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6)
