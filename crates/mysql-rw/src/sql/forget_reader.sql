-- FORGET removes what is left of a reader that lost its lock and knows it.
DELETE FROM {readers} WHERE name = :name AND owner = :owner
