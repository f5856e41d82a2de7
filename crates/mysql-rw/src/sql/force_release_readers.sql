-- Marks the readers whose epochs are from :oldest to :newest as released by force. Their rows stay, so that their next renewal is
-- told, and are in no writer's way.
-- In: :name, :oldest, :newest. Out: the number of changed rows.
-- A reader whose lease had ended by itself is told that.
UPDATE {readers} SET forced = 1
WHERE name = :name AND forced = 0 AND epoch >= :oldest AND epoch <= :newest AND expires_at > UTC_TIMESTAMP(6)
