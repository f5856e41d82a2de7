-- Answers what became of these keys, after a batch of releases.
-- In: the name of each row. Out: name, the stamp, the epoch, the writer (or NULL), and the writer that was released by force (or NULL).
SELECT name, TIMESTAMPDIFF(MICROSECOND, '2000-01-01', writer_expires_at), epoch, writer, forced
FROM {locks} FORCE INDEX (PRIMARY) WHERE {any name = ?}
