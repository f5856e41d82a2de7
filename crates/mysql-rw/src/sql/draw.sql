-- DRAW takes :count tenure numbers for readers if no writer is there, and evicts a writer whose lease ran out. It
-- answers in the OK packet: the last of the numbers, or, with bit 63 set, how many microseconds are left of the lease
-- that stands in the way.
-- A reader that waits (:waits) and is refused twice, 20 ms apart, leaves word, and the readers' turn comes after the
-- writer's. readers_wait_until is up to 100 ms ahead after the first refusal, and further after the second; a reader
-- that comes in between was not kept waiting. In the turn the first to come ends it after one more pause between two
-- tries: all who waited with it have come then.
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
  readers_wait_until = CASE
    WHEN verdict = 1 THEN IF(readers_wait_until > UTC_TIMESTAMP(6) + INTERVAL 100000 MICROSECOND,
      readers_wait_until, '2000-01-01')
    WHEN NOT :waits THEN readers_wait_until
    WHEN readers_wait_until <= UTC_TIMESTAMP(6) THEN UTC_TIMESTAMP(6) + INTERVAL 100000 MICROSECOND
    WHEN readers_wait_until <= UTC_TIMESTAMP(6) + INTERVAL 80000 MICROSECOND
      OR readers_wait_until BETWEEN UTC_TIMESTAMP(6) + INTERVAL 100001 MICROSECOND
        AND UTC_TIMESTAMP(6) + INTERVAL 250000 MICROSECOND
      THEN UTC_TIMESTAMP(6) + INTERVAL 300000 MICROSECOND
    ELSE readers_wait_until
  END,
  readers_turn_until = IF(verdict = 1,
    LEAST(readers_turn_until, UTC_TIMESTAMP(6) + INTERVAL 50000 MICROSECOND),
    readers_turn_until
  ),
  waiting = IF(verdict = 1, NULL, waiting),
  writer = IF(verdict = 1, NULL, writer)
WHERE name = :name
