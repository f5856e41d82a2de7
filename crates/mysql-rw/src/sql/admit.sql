-- ADMIT adds a reader's row if there is no writer. The shared lock on the key's row lets readers in side by side, and
-- makes a writer's claim wait until they are all there to be counted. It answers the tenure number in the OK packet,
-- that of the row if this reader was admitted before, and zero if there is a writer, or was one since the number was
-- drawn: a later grant must not have a smaller number.
INSERT INTO {readers} (name, owner, tenure, expires_at, acquired_at, label, reason, forced)
SELECT
  l.name, :owner, LAST_INSERT_ID(:tenure), UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND, UTC_TIMESTAMP(6),
  :label, :reason, 0
FROM {locks} AS l
WHERE l.name = :name AND l.writer IS NULL AND l.written < :tenure
LOCK IN SHARE MODE
ON DUPLICATE KEY UPDATE tenure = IF({readers}.forced, {readers}.tenure, LAST_INSERT_ID({readers}.tenure))
