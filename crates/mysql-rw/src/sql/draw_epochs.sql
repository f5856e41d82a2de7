-- Proves: no writer held the key when these epochs were drawn. Draws :count epochs for readers, and evicts a writer whose
-- lease ran out.
-- In: :name, :count, :waits (whether a reader of these waits), :away (how long its round trip takes, in microseconds).
-- Out, in the OK packet (LAST_INSERT_ID): the last of the epochs; or, with bit 63 set, the microseconds that are left of the
-- lease in the way. Epochs of which the last would be more than a millisecond ahead of the clock are not given: nothing changes,
-- and the answer is a lease of a millisecond. By more than a second only a clock that was set back is behind: then the epoch counts on.
-- `verdict` is assigned first and read by the assignments that follow: 0 refused, 1 drawn, 2 ahead of the clock.
-- A waiting reader books a turn for the readers when it is refused for the second time, 20 ms or more after the first, or
-- when it is that far away. The turn lasts until the reader can have asked once more and have been admitted, and keeps new
-- writers out. From readers_wait_until on, for 100 ms and a round trip, a refusal is a second one.
-- The first reader in the turn shortens it to one more pause between two tries, and the round trips to be admitted: all who
-- waited with it have come by then, unless a reader that is further away has booked the turn for longer.
-- A reader that is far away and finds no writer would find one when its admission arrives. So it begins a turn, but only
-- one for each epoch of a writer, so that readers who keep coming do not keep writers out for ever.
UPDATE {locks}
SET
  verdict = CASE
    WHEN writer IS NOT NULL AND writer_expires_at > UTC_TIMESTAMP(6) THEN 0
    WHEN epoch + :count BETWEEN {clock} + 17 AND {clock} + 16016 THEN 2
    ELSE 1
  END,
  epoch = CASE verdict
    WHEN 1 THEN LAST_INSERT_ID(GREATEST(epoch + :count, {clock}))
    WHEN 2 THEN epoch + 0 * LAST_INSERT_ID(9223372036854775808 + 1000)
    ELSE epoch + 0 * LAST_INSERT_ID(9223372036854775808 + TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), writer_expires_at))
  END,
  readers_turn_until = CASE
    WHEN verdict = 2 THEN readers_turn_until
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
    WHEN verdict > 0 OR NOT :waits OR readers_wait_until > UTC_TIMESTAMP(6) THEN readers_wait_until
    WHEN readers_wait_until >= UTC_TIMESTAMP(6) - INTERVAL 100000 + :away MICROSECOND THEN UTC_TIMESTAMP(6)
    ELSE UTC_TIMESTAMP(6) + INTERVAL 20000 MICROSECOND
  END,
  waiting = IF(verdict = 1, NULL, waiting),
  writer = IF(verdict = 1, NULL, writer)
WHERE name = :name
