-- ADMIT, for a writer that becomes a reader: adds its reader's row while it is the writer, which then lets go. Wherever
-- it breaks off, one of the two bars every other writer.
INSERT INTO {readers} (name, owner, tenure, expires_at, acquired_at, label, reason, forced)
SELECT
  l.name, :owner, LAST_INSERT_ID(:tenure), UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND, UTC_TIMESTAMP(6),
  :label, :reason, 0
FROM {locks} AS l
WHERE l.name = :name AND l.writer = :writer AND l.waiting IS NULL
LOCK IN SHARE MODE
ON DUPLICATE KEY UPDATE tenure = IF({readers}.forced, {readers}.tenure, LAST_INSERT_ID({readers}.tenure))
