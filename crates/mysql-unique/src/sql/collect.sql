-- COLLECT deletes one row if it is still idle.
DELETE FROM {table}
WHERE name = :name AND expires_at <= UTC_TIMESTAMP(6)
  AND tenure + :age < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000
