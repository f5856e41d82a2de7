-- Answers who holds each of these keys, and who was released by force last.
-- In: the name of each row. Out: name, the owner that holds (or NULL), the owner that was released by force (or NULL).
SELECT name, IF(expires_at > UTC_TIMESTAMP(6), owner, NULL), forced
FROM {table} FORCE INDEX (PRIMARY) WHERE {any name = ?}
