-- LOOK, for readers: 1 for who holds, 2 for who was released by force.
SELECT name, owner, 1 FROM {readers}
WHERE (name, owner) IN ({pairs}) AND forced = 0 AND expires_at > UTC_TIMESTAMP(6)
UNION ALL
SELECT name, owner, 2 FROM {readers} WHERE (name, owner) IN ({pairs}) AND forced = 1
