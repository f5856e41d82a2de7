-- EVICT, for readers whose number is not above :newest: their rows stay, marked, so that they are told, and stand in
-- nobody's way.
UPDATE {readers} SET forced = 1 WHERE name = :name AND forced = 0 AND tenure <= :newest
