-- Proves, for each row: no writer held the key. Takes the keys that no writer has for writers, as try_acquire_writer.sql takes
-- one, but does not look for readers. What became of each is the answer of claimed.sql.
-- In, for each row, sorted by the names: name, label, reason, owner, lease in microseconds; and then the client.
-- VALUES() is what the row would have if it were new. MySQL has a newer word for it, which MariaDB does not know.
INSERT INTO {locks}
  (name, verdict, acquired_at, label, reason, epoch, written, writer, writer_expires_at, readers_wait_until, readers_turn_until)
VALUES {each
  (?, 1, UTC_TIMESTAMP(6), ?, ?, {clock} + 16, {clock} + 16, ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND, '2000-01-01', '2000-01-01')
}
ON DUPLICATE KEY UPDATE
  verdict = IF(((writer IS NULL OR writer_expires_at <= UTC_TIMESTAMP(6)) AND readers_turn_until <= UTC_TIMESTAMP(6)
      OR writer IS NOT NULL AND COALESCE(waiting = ?, 0))
    AND epoch + 1 NOT BETWEEN {clock} + 17 AND {clock} + 16016, 1, 0),
  epoch = IF(verdict = 1, GREATEST(epoch + 1, {clock}), epoch),
  written = IF(verdict = 1, epoch, written),
  label = IF(verdict = 1, VALUES(label), label),
  reason = IF(verdict = 1, VALUES(reason), reason),
  acquired_at = IF(verdict = 1, VALUES(acquired_at), acquired_at),
  waiting = IF(verdict = 1, NULL, waiting),
  writer = IF(verdict = 1, VALUES(writer), writer),
  writer_expires_at = IF(verdict = 1, VALUES(writer_expires_at), writer_expires_at)
