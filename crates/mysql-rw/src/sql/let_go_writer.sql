-- LET_GO, for writers: frees the key, or takes back a mark. If readers have booked a turn, it is theirs.
UPDATE {locks} SET waiting = NULL, writer = NULL
WHERE name = :name AND writer = :owner AND writer_expires_at > UTC_TIMESTAMP(6)
