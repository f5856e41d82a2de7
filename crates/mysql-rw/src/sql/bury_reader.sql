-- BURY deletes one of them if it is still dead.
DELETE FROM {readers} WHERE name = :name AND owner = :owner AND expires_at <= UTC_TIMESTAMP(6)
