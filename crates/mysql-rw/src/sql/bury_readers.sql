-- BURY deletes those of these readers that are still dead.
DELETE {readers} FROM {readers} FORCE INDEX (PRIMARY)
WHERE ({any name = ? AND owner = ?}) AND expires_at + INTERVAL ? MICROSECOND < UTC_TIMESTAMP(6)
