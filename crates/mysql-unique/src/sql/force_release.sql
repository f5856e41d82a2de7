-- Proves: the key had this epoch until now. Frees the key, whoever holds it, and notes the owner as released by force, so
-- that its next renewal is told.
-- In: :name, :epoch (the one that was seen). Out: one changed row, or none if the key is free or has another epoch.
UPDATE {table} SET forced = owner, expires_at = '2000-01-01'
WHERE name = :name AND epoch = :epoch AND expires_at > UTC_TIMESTAMP(6)
