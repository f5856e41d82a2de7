-- PURGE evicts the readers whose lease ran out. Only whoever has claimed the key runs it: nobody new comes in then.
DELETE FROM {readers} WHERE name = :name AND expires_at <= UTC_TIMESTAMP(6)
