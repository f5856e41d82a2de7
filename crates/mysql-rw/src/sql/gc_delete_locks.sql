-- Deletes those of these rows that are still idle; see gc_find_locks.sql. A reader that holds stays safe: its own row is what
-- keeps writers out.
-- In: the name of each row, then the age in sixteenths of a millisecond. Out: the number of deleted rows.
DELETE {locks} FROM {locks} FORCE INDEX (PRIMARY)
WHERE ({any name = ?}) AND (writer IS NULL OR writer_expires_at <= UTC_TIMESTAMP(6))
  AND epoch + ? < {clock}
