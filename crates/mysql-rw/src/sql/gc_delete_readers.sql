-- Deletes those of these readers whose lease is still over; see gc_find_readers.sql.
-- In: name and owner of each row, then the age in microseconds. Out: the number of deleted rows.
DELETE {readers} FROM {readers} FORCE INDEX (PRIMARY)
WHERE ({any name = ? AND owner = ?}) AND expires_at + INTERVAL ? MICROSECOND < UTC_TIMESTAMP(6)
