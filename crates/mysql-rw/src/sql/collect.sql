-- COLLECT deletes one row if it is still idle. A reader that is there stays safe: its own row is what bars writers.
DELETE FROM {locks}
WHERE name = :name AND (writer IS NULL OR writer_expires_at <= UTC_TIMESTAMP(6))
  AND tenure + :age < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000
