-- TAKE_OVER, for readers.
UPDATE {readers} FORCE INDEX (PRIMARY)
SET owner = :new_owner, expires_at = GREATEST(expires_at, UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND)
WHERE name = :name AND owner = :owner AND tenure = :epoch AND forced = 0 AND expires_at > UTC_TIMESTAMP(6)
