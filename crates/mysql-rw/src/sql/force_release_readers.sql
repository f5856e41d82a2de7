-- Marks the readers whose epoch is at most :newest as released by force. Their rows stay, so that their next renewal is
-- told, and are in no writer's way.
-- In: :name, :newest. Out: the number of changed rows.
UPDATE {readers} SET forced = 1 WHERE name = :name AND forced = 0 AND epoch <= :newest
