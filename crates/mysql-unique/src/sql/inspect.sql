-- INSPECT shows who holds the key.
SELECT name, tenure, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), label, reason FROM {table}
WHERE name = :name AND expires_at > UTC_TIMESTAMP(6)
