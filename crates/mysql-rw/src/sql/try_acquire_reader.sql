-- Proves: no writer held the key, and none was granted since this reader's epoch was drawn. Adds the row of the reader.
-- In: :name, :owner, :epoch, :ttl (microseconds), :label, :reason.
-- Out, in the OK packet (LAST_INSERT_ID): the epoch; or zero if a writer is there or waits, or was granted since the
-- epoch was drawn, because a later grant must not have a smaller epoch.
-- The shared lock on the key's row admits readers side by side, and makes the claim of a writer wait until their rows exist
-- and are counted. Sent again, it answers the epoch of the row while this reader holds, admits the reader anew if its lease
-- ran out, and answers zero if it was released by force: the SELECT has set LAST_INSERT_ID to :epoch by then, so each of
-- these cases has to set it again.
INSERT INTO {readers} (name, owner, epoch, expires_at, acquired_at, label, reason, forced)
SELECT
  l.name, :owner, LAST_INSERT_ID(:epoch), UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND, UTC_TIMESTAMP(6),
  :label, :reason, NULL
FROM {locks} AS l
WHERE l.name = :name AND l.writer IS NULL AND l.waiting IS NULL AND l.written < :epoch
LOCK IN SHARE MODE
ON DUPLICATE KEY UPDATE
  epoch = CASE
    WHEN {readers}.forced IS NOT NULL THEN {readers}.epoch + LAST_INSERT_ID(0)
    WHEN {readers}.expires_at <= UTC_TIMESTAMP(6) THEN LAST_INSERT_ID(:epoch)
    ELSE LAST_INSERT_ID({readers}.epoch)
  END,
  label = IF({readers}.forced IS NOT NULL OR {readers}.expires_at > UTC_TIMESTAMP(6), {readers}.label, :label),
  reason = IF({readers}.forced IS NOT NULL OR {readers}.expires_at > UTC_TIMESTAMP(6), {readers}.reason, :reason),
  acquired_at = IF({readers}.forced IS NOT NULL OR {readers}.expires_at > UTC_TIMESTAMP(6),
    {readers}.acquired_at, UTC_TIMESTAMP(6)),
  expires_at = IF({readers}.forced IS NOT NULL OR {readers}.expires_at > UTC_TIMESTAMP(6),
    {readers}.expires_at, UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND)
