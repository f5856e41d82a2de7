-- LOOK answers, for these names and owners, 1 for who holds and 2 for who was released by force.
SELECT name, owner, 1 FROM {table} WHERE (name, owner) IN ({pairs}) AND expires_at > UTC_TIMESTAMP(6)
UNION ALL
SELECT name, forced, 2 FROM {table} WHERE (name, forced) IN ({pairs})
