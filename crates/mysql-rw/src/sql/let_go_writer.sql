-- LET_GO, for writers: frees the key, or takes back a mark. If readers left word, it is their turn: for three times as
-- long as a waiter pauses between two tries, unless a reader comes, who ends it early.
UPDATE {locks}
SET
  readers_turn_until = IF(readers_wait_until > UTC_TIMESTAMP(6) + INTERVAL 100000 MICROSECOND,
    UTC_TIMESTAMP(6) + INTERVAL 150000 MICROSECOND,
    readers_turn_until
  ),
  readers_wait_until = IF(readers_wait_until > UTC_TIMESTAMP(6) + INTERVAL 100000 MICROSECOND,
    '2000-01-01',
    readers_wait_until
  ),
  waiting = NULL,
  writer = NULL
WHERE name = :name AND writer = :owner AND writer_expires_at > UTC_TIMESTAMP(6)
