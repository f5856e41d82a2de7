-- LET_GO, for writers: frees the key, or takes back a mark. If readers wait, the next few milliseconds are theirs.
UPDATE {locks}
SET
  readers_turn_until = IF(readers_wait_until > UTC_TIMESTAMP(6),
    UTC_TIMESTAMP(6) + INTERVAL 5000 MICROSECOND,
    readers_turn_until
  ),
  readers_wait_until = '2000-01-01',
  waiting = NULL,
  writer = NULL
WHERE name = :name AND writer = :owner AND writer_expires_at > UTC_TIMESTAMP(6)
