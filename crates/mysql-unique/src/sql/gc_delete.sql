-- Deletes those of these rows that are still idle; see gc_find.sql.
-- In: the name of each row, then the age in sixteenths of a millisecond. Out: the number of deleted rows.
DELETE {table} FROM {table} FORCE INDEX (PRIMARY)
WHERE ({any name = ?}) AND expires_at <= UTC_TIMESTAMP(6)
  AND epoch + ? < {clock}
