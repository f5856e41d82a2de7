-- LOOK answers, for these names, who holds and who was released by force last.
SELECT name, IF(expires_at > UTC_TIMESTAMP(6), owner, NULL), forced
FROM {table} FORCE INDEX (PRIMARY) WHERE {any name = ?}
