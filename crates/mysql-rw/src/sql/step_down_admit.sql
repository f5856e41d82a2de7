-- ADMIT, for a writer that becomes a reader: adds its reader's row while it is the writer, which then lets go. Wherever
-- it breaks off, one of the two bars every other writer. Repeated, it is like ADMIT.
INSERT INTO {readers} (name, owner, tenure, expires_at, acquired_at, label, reason, forced)
SELECT
  l.name, :owner, LAST_INSERT_ID(:tenure), UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND, UTC_TIMESTAMP(6),
  :label, :reason, 0
FROM {locks} AS l
WHERE l.name = :name AND l.writer = :writer AND l.waiting IS NULL
LOCK IN SHARE MODE
ON DUPLICATE KEY UPDATE
  tenure = CASE
    WHEN {readers}.forced THEN {readers}.tenure + LAST_INSERT_ID(0)
    WHEN {readers}.expires_at <= UTC_TIMESTAMP(6) THEN LAST_INSERT_ID(:tenure)
    ELSE LAST_INSERT_ID({readers}.tenure)
  END,
  label = IF({readers}.forced OR {readers}.expires_at > UTC_TIMESTAMP(6), {readers}.label, :label),
  reason = IF({readers}.forced OR {readers}.expires_at > UTC_TIMESTAMP(6), {readers}.reason, :reason),
  acquired_at = IF({readers}.forced OR {readers}.expires_at > UTC_TIMESTAMP(6),
    {readers}.acquired_at, UTC_TIMESTAMP(6)),
  expires_at = IF({readers}.forced OR {readers}.expires_at > UTC_TIMESTAMP(6),
    {readers}.expires_at, UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND)
