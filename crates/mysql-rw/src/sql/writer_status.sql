-- Answers which writer holds each of these keys, and which was released by force last.
-- In: the name of each row. Out: name, the owner that holds (or NULL), the owner that was released by force (or NULL).
SELECT name, IF(waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6), writer, NULL), forced
FROM {locks} FORCE INDEX (PRIMARY) WHERE {any name = ?}
