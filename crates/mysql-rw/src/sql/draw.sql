-- DRAW takes :count tenure numbers for readers if no writer is there, and evicts a writer whose lease ran out. It
-- answers in the OK packet: the last of the numbers, or, with bit 63 set, how many microseconds are left of the lease
-- that stands in the way. A reader that waits (:waits) leaves word, so that the readers' turn comes after the writer's.
UPDATE {locks}
SET
  verdict = IF(writer IS NULL OR writer_expires_at <= UTC_TIMESTAMP(6), 1, 0),
  tenure = IF(verdict = 1,
    LAST_INSERT_ID(GREATEST(
      tenure + :count,
      CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 AS UNSIGNED)
    )),
    tenure + 0 * LAST_INSERT_ID(9223372036854775808 + TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), writer_expires_at))
  ),
  readers_wait_until = IF(
    verdict = 0 AND :waits AND readers_wait_until < UTC_TIMESTAMP(6) + INTERVAL 50000 MICROSECOND,
    UTC_TIMESTAMP(6) + INTERVAL 100000 MICROSECOND,
    readers_wait_until
  ),
  waiting = IF(verdict = 1, NULL, waiting),
  writer = IF(verdict = 1, NULL, writer)
WHERE name = :name
