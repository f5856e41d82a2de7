-- LOOK, for readers: answers, for these names and owners, who holds and who was released by force.
SELECT name, IF(forced = 0 AND expires_at > UTC_TIMESTAMP(6), owner, NULL), IF(forced = 1, owner, NULL)
FROM {readers} FORCE INDEX (PRIMARY) WHERE {any name = ? AND owner = ?}
