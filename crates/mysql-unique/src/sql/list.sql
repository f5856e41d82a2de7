-- LIST shows who holds the keys of a stretch, in the order of the names.
SELECT name, tenure, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), label, reason FROM {table}
WHERE name >= :from AND name < :to AND name > :after AND name <= :upto AND expires_at > UTC_TIMESTAMP(6)
ORDER BY name LIMIT 101
