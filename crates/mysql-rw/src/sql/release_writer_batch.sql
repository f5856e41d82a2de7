-- Proves, for each row that it changes: this writer held the key until now, or had its mark there. Frees these keys, as
-- release_writer.sql frees one, and stamps their rows, so that released_writers.sql can tell which they were.
-- In: the stamp, in microseconds since 2000, then name and owner of each row. Out: the number of changed rows, and as the insert id
-- the clock.
UPDATE {locks} FORCE INDEX (PRIMARY)
SET waiting = NULL, writer = NULL,
  writer_expires_at = '2000-01-01' + INTERVAL ? + 0 * LAST_INSERT_ID({clock}) MICROSECOND
WHERE ({any name = ? AND writer = ?}) AND writer_expires_at > UTC_TIMESTAMP(6)
