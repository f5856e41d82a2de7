-- Deletes what is left of a reader that lost its lease and has been told so, or that never held (downgrade_reader.sql). The row of
-- one that was released by force stays until its lease is over: the forced release may not have read it yet.
-- In: :name, :owner.
DELETE FROM {readers} WHERE name = :name AND owner = :owner AND (forced IS NULL OR forced = owner)
