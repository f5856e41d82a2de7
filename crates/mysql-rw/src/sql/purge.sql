-- PURGE deletes the readers whose lease ran out, also of those who were released by force and never heard of it. Only
-- whoever has claimed the key runs it: nobody new comes in then.
DELETE FROM {readers} WHERE name = :name AND expires_at <= UTC_TIMESTAMP(6)
