-- ADMIT adds a reader's row if there is no writer (:writer is NULL), or if it is the writer itself that becomes a reader,
-- which then lets go: wherever that breaks off, one of the two bars every other writer. The shared lock on the key's row
-- lets readers in side by side, and makes a writer's claim wait until they are all there to be counted. It answers the
-- epoch in the OK packet, and zero if there is another writer, one that waits, or one that was granted since the
-- number was drawn: a later grant must not have a smaller number.
-- Repeated, it answers that of the row while this reader holds, admits it anew if its lease ran out, and answers zero
-- if it was released by force: the SELECT has said :epoch by then, so each of these has to be said.
INSERT INTO {readers} (name, owner, tenure, expires_at, acquired_at, label, reason, forced)
SELECT
  l.name, :owner, LAST_INSERT_ID(:epoch), UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND, UTC_TIMESTAMP(6),
  :label, :reason, 0
FROM {locks} AS l
WHERE l.name = :name AND l.writer <=> :writer AND l.waiting IS NULL AND l.written < :epoch
LOCK IN SHARE MODE
ON DUPLICATE KEY UPDATE
  tenure = CASE
    WHEN {readers}.forced THEN {readers}.tenure + LAST_INSERT_ID(0)
    WHEN {readers}.expires_at <= UTC_TIMESTAMP(6) THEN LAST_INSERT_ID(:epoch)
    ELSE LAST_INSERT_ID({readers}.tenure)
  END,
  label = IF({readers}.forced OR {readers}.expires_at > UTC_TIMESTAMP(6), {readers}.label, :label),
  reason = IF({readers}.forced OR {readers}.expires_at > UTC_TIMESTAMP(6), {readers}.reason, :reason),
  acquired_at = IF({readers}.forced OR {readers}.expires_at > UTC_TIMESTAMP(6),
    {readers}.acquired_at, UTC_TIMESTAMP(6)),
  expires_at = IF({readers}.forced OR {readers}.expires_at > UTC_TIMESTAMP(6),
    {readers}.expires_at, UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND)
