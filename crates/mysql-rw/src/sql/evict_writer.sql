-- EVICT, for writers: frees the key if it is still the epoch that was seen, and remembers the owner, so that it is told.
-- It answers the newest number of the key in the OK packet.
UPDATE {locks} SET tenure = LAST_INSERT_ID(tenure), forced = writer, waiting = NULL, writer = NULL
WHERE name = :name AND written = :written AND writer IS NOT NULL
