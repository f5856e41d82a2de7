-- LOOK, for writers: answers, for these names, who holds and who was released by force last.
SELECT name, IF(waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6), writer, NULL), forced
FROM {locks} FORCE INDEX (PRIMARY) WHERE {any name = ?}
