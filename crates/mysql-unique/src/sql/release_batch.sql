-- Proves, for each row that it changes: this owner held the key until now. Frees these keys, as release.sql frees one, and
-- stamps their rows, so that released.sql can tell which they were.
-- In: the stamp, in microseconds since 2000, then name and owner of each row. Out: the number of changed rows, and as the insert id
-- the clock.
UPDATE {table} FORCE INDEX (PRIMARY) SET expires_at = '2000-01-01' + INTERVAL ? + 0 * LAST_INSERT_ID({clock}) MICROSECOND
WHERE ({any name = ? AND owner = ?}) AND expires_at > UTC_TIMESTAMP(6)
