-- Answers what became of these keys, after a batch of releases.
-- In: the name of each row. Out: name, the stamp, the epoch, the owner that was granted last, and the owner that was released by
-- force (or NULL).
SELECT name, TIMESTAMPDIFF(MICROSECOND, '2000-01-01', expires_at), epoch, owner, forced
FROM {table} FORCE INDEX (PRIMARY) WHERE {any name = ?}
