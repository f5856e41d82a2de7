-- COLLECT deletes those of these rows that are still idle.
DELETE {table} FROM {table} FORCE INDEX (PRIMARY)
WHERE ({any name = ?}) AND expires_at <= UTC_TIMESTAMP(6)
  AND tenure + ? < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000
