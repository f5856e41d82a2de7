-- DEAD finds rows of readers that died and that no writer has evicted.
SELECT name, owner FROM {readers}
WHERE name >= :from AND name < :to AND name >= :after
  AND expires_at + INTERVAL :age MICROSECOND < UTC_TIMESTAMP(6)
ORDER BY name LIMIT 100
