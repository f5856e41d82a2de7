-- DRAW takes :count epochs for readers if no writer is there, and evicts a writer whose lease ran out. It
-- answers in the OK packet: the last of the numbers, or, with bit 63 set, how many microseconds are left of the lease
-- that stands in the way.
-- A reader that waits (:waits), and that is refused for the second time 20 ms after the first, or is that far away, books
-- a turn for the readers: until it can have asked once more and have been admitted, whoever writes now. :away is how
-- long a round trip takes it, in microseconds. From readers_wait_until on, for 100 ms and a round trip, a refusal is a
-- second one.
-- The first to come in the turn ends it after one more pause between two tries, and the round trips to be admitted:
-- all who waited with it have come then, unless one that is further away has booked it for longer. One that is far
-- away and finds no writer would find one when its admission arrives: it begins a turn, one for each epoch of a
-- writer, so that readers who keep coming do not bar writers for ever.
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
  readers_turn_until = CASE
    WHEN verdict = 0 THEN IF(:waits AND (:away >= 20000 OR readers_wait_until
        BETWEEN UTC_TIMESTAMP(6) - INTERVAL 100000 + :away MICROSECOND AND UTC_TIMESTAMP(6)),
      GREATEST(readers_turn_until, UTC_TIMESTAMP(6) + INTERVAL 150000 + 3 * :away MICROSECOND),
      readers_turn_until)
    WHEN readers_turn_until > UTC_TIMESTAMP(6) + INTERVAL 150000 MICROSECOND THEN readers_turn_until
    WHEN readers_turn_until > UTC_TIMESTAMP(6)
      THEN LEAST(readers_turn_until, UTC_TIMESTAMP(6) + INTERVAL 50000 + 2 * :away MICROSECOND)
    WHEN :waits AND :away >= 20000 AND readers_turn_until <= acquired_at
      THEN UTC_TIMESTAMP(6) + INTERVAL 50000 + 2 * :away MICROSECOND
    ELSE readers_turn_until
  END,
  readers_wait_until = CASE
    WHEN verdict = 1 OR NOT :waits OR readers_wait_until > UTC_TIMESTAMP(6) THEN readers_wait_until
    WHEN readers_wait_until >= UTC_TIMESTAMP(6) - INTERVAL 100000 + :away MICROSECOND THEN UTC_TIMESTAMP(6)
    ELSE UTC_TIMESTAMP(6) + INTERVAL 20000 MICROSECOND
  END,
  waiting = IF(verdict = 1, NULL, waiting),
  writer = IF(verdict = 1, NULL, writer)
WHERE name = :name
