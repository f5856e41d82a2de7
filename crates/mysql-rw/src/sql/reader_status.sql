-- Answers, for each of these readers, whether it holds its key or was released by force.
-- In: name and owner of each row. Out: name, the owner if it holds (or NULL), the owner if it was released by force (or
-- NULL).
SELECT name, IF(forced IS NULL AND expires_at > UTC_TIMESTAMP(6), owner, NULL), IF(forced IS NOT NULL, owner, NULL)
FROM {readers} FORCE INDEX (PRIMARY) WHERE {any name = ? AND owner = ?}
