-- Marks the readers whose epochs are from :oldest to :newest as ended by the forced release :by. Their rows stay until their leases
-- are over, so that their next renewals are told, and are in no writer's way.
-- In: :name, :oldest, :newest, :by (drawn at random). force_released_readers.sql, which follows, answers which they are.
-- A reader whose lease had ended by itself is told that.
UPDATE {readers} SET forced = :by
WHERE name = :name AND forced IS NULL AND epoch >= :oldest AND epoch <= :newest AND expires_at > UTC_TIMESTAMP(6)
