-- LIST shows who holds the keys of a range, from after a name on, in the order of the names.
SELECT name, tenure, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), label, reason FROM {table}
WHERE name >= :from AND name < :to AND name > :after AND expires_at > UTC_TIMESTAMP(6)
ORDER BY name LIMIT 101
