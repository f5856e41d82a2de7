-- LET_GO, for readers.
DELETE FROM {readers}
WHERE name = :name AND owner = :owner AND forced = 0 AND expires_at > UTC_TIMESTAMP(6)
