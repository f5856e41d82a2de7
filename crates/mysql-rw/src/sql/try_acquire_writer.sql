-- Proves: no writer held the key, and no reader seemed to. Takes the key for a writer; count_readers.sql, which follows, has
-- the last word on readers.
-- In: :name, :owner, :client (the locker, the same for all its claims), :waits, :ttl (microseconds), :label, :reason.
-- Out, in the OK packet (LAST_INSERT_ID): the epoch of the grant; or, with bit 63 set, the microseconds that are left of
-- the lease or the readers' turn in the way, zero if unknown.
-- With a reader there, a writer that waits leaves its mark: new readers are refused until the mark expires after 500 ms.
-- `verdict` is assigned first and read by the assignments that follow: 0 refused, 1 granted, 2 marked, 3 held already,
-- 4 not granted because the epoch would be too far ahead of the clock, as in draw_epochs.sql.
UPDATE {locks} AS l
SET
  verdict = CASE
    WHEN writer = :owner AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6) THEN 3
    WHEN (writer IS NULL OR writer_expires_at <= UTC_TIMESTAMP(6)) AND readers_turn_until <= UTC_TIMESTAMP(6)
      OR writer IS NOT NULL AND COALESCE(waiting = :client, 0)
      THEN IF(EXISTS(
        SELECT 1 FROM {readers} AS r WHERE r.name = l.name AND r.forced IS NULL AND r.expires_at > UTC_TIMESTAMP(6)
      ), IF(:waits, 2, 0), IF(epoch + 1 BETWEEN {clock} + 17 AND {clock} + 16016, 4, 1))
    ELSE 0
  END,
  epoch = CASE verdict
    WHEN 1 THEN LAST_INSERT_ID(GREATEST(epoch + 1, {clock}))
    WHEN 4 THEN epoch + 0 * LAST_INSERT_ID(9223372036854775808 + 1000)
    WHEN 3 THEN LAST_INSERT_ID(epoch)
    WHEN 2 THEN epoch + 0 * LAST_INSERT_ID(9223372036854775808)
    ELSE epoch + 0 * LAST_INSERT_ID(9223372036854775808 + GREATEST(0,
      IF(writer IS NULL, 0, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), writer_expires_at)),
      TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), readers_turn_until)
    ))
  END,
  written = IF(verdict = 1, epoch, written),
  label = IF(verdict = 1, :label, label),
  reason = IF(verdict = 1, :reason, reason),
  acquired_at = IF(verdict = 1, UTC_TIMESTAMP(6), acquired_at),
  waiting = CASE verdict WHEN 1 THEN NULL WHEN 2 THEN :client ELSE waiting END,
  writer = IF(verdict IN (1, 2), :owner, writer),
  writer_expires_at = CASE verdict
    WHEN 1 THEN UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND
    WHEN 2 THEN UTC_TIMESTAMP(6) + INTERVAL 500000 MICROSECOND
    ELSE writer_expires_at
  END
WHERE name = :name
