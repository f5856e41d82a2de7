-- EVICT, for writers: frees the key if it is still the tenure that was seen, and remembers the owner, so that it is told.
UPDATE {locks} SET forced = writer, waiting = NULL, writer = NULL
WHERE name = :name AND tenure = :tenure AND writer IS NOT NULL
