-- Proves: this owner held the key until now. Frees the key; its row stays, and with it the epoch.
-- In: :name, :owner. Out: one changed row, or none if this owner does not hold the key.
UPDATE {table} SET expires_at = '2000-01-01'
WHERE name = :name AND owner = :owner AND expires_at > UTC_TIMESTAMP(6)
