-- DEAD finds the readers of a stretch that died and that no writer has evicted.
SELECT name, owner FROM {readers}
WHERE name >= :from AND name < :to AND name > :after AND name <= :upto
  AND expires_at + INTERVAL :age MICROSECOND < UTC_TIMESTAMP(6)
