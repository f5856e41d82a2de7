-- Deletes what is left of a reader that lost its lease and has been told so.
-- In: :name, :owner.
DELETE FROM {readers} WHERE name = :name AND owner = :owner
