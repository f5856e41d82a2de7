-- HOLDERS shows who holds the keys of a range: name, whether it is exclusive, epoch, what is left, label and reason.
SELECT name, 1, written AS tenure, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), writer_expires_at) AS remains, label, reason
FROM {locks}
WHERE name >= :from AND name <= :to
  AND writer IS NOT NULL AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6)
UNION ALL
SELECT name, 0, tenure, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remains, label, reason
FROM {readers}
WHERE name >= :from AND name <= :to AND forced = 0 AND expires_at > UTC_TIMESTAMP(6)
