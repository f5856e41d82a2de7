-- Proves: this reader held the key until now. Deletes its row.
-- In: :name, :owner. Out: one deleted row, or none if this reader does not hold the key.
DELETE FROM {readers}
WHERE name = :name AND owner = :owner AND forced IS NULL AND expires_at > UTC_TIMESTAMP(6)
