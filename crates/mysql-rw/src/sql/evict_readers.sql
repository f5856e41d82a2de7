-- EVICT, for readers: their rows stay, marked, so that they are told, and stand in nobody's way.
UPDATE {readers} SET forced = 1 WHERE name = :name AND forced = 0
