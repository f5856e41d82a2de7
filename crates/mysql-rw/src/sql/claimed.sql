-- Proves, for each key with a writer and no reader's row: no reader holds the key that this writer has claimed.
-- In: the name of each row, after a batch of claims. Out: name, the writer that has claimed the key (or NULL), the epoch of the
-- last writer, the microseconds that are left of the lease or the readers' turn in the way, and the number of readers' rows.
SELECT
  l.name, IF(l.waiting IS NULL AND l.writer_expires_at > UTC_TIMESTAMP(6), l.writer, NULL), l.written,
  GREATEST(0,
    IF(l.writer IS NULL, 0, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.writer_expires_at)),
    TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), l.readers_turn_until)
  ),
  COUNT(r.name)
FROM {locks} AS l FORCE INDEX (PRIMARY) LEFT JOIN {readers} AS r FORCE INDEX (PRIMARY) ON r.name = l.name
WHERE {any l.name = ?}
GROUP BY l.name
