-- Deletes the rows of the readers whose lease ran out, with those of readers that were released by force and never
-- renewed. Only the writer that has claimed the key runs it: no new reader is admitted then.
-- In: :name. Out: the number of deleted rows.
DELETE FROM {readers} WHERE name = :name AND expires_at <= UTC_TIMESTAMP(6)
