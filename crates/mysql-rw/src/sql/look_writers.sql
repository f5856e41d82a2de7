-- LOOK, for writers: 1 for who holds, 2 for who was released by force.
SELECT name, writer, 1 FROM {locks}
WHERE (name, writer) IN ({pairs}) AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6)
UNION ALL
SELECT name, forced, 2 FROM {locks} WHERE (name, forced) IN ({pairs})
