-- EVICT frees the key whoever holds it, if it is still the epoch that was seen, and remembers the owner, so that it
-- is told.
UPDATE {table} SET forced = owner, expires_at = '2000-01-01'
WHERE name = :name AND tenure = :epoch AND expires_at > UTC_TIMESTAMP(6)
