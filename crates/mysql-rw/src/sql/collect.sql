-- COLLECT deletes those of these rows that are still idle. A reader that is there stays safe: its own row is what bars
-- writers.
DELETE {locks} FROM {locks} FORCE INDEX (PRIMARY)
WHERE ({any name = ?}) AND (writer IS NULL OR writer_expires_at <= UTC_TIMESTAMP(6))
  AND tenure + ? < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000
