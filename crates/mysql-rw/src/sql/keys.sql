-- KEYS finds the keys of a stretch that are held, in the order of the names.
SELECT name FROM {locks}
WHERE name >= :from AND name < :to AND name > :after AND name <= :upto
  AND writer IS NOT NULL AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6)
UNION
SELECT name FROM {readers}
WHERE name >= :from AND name < :to AND name > :after AND name <= :upto
  AND forced = 0 AND expires_at > UTC_TIMESTAMP(6)
ORDER BY name LIMIT 101
