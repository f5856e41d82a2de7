-- Answers who holds the keys in a range of names.
-- In: :from, :to, both inclusive. Out, for each holder: name, whether it is the writer, epoch, the microseconds that are
-- left of its lease, label, reason.
SELECT name, 1, written AS epoch, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), writer_expires_at) AS remains, label, reason
FROM {locks}
WHERE name >= :from AND name <= :to
  AND writer IS NOT NULL AND waiting IS NULL AND writer_expires_at > UTC_TIMESTAMP(6)
UNION ALL
SELECT name, 0, epoch, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remains, label, reason
FROM {readers}
WHERE name >= :from AND name <= :to AND forced IS NULL AND expires_at > UTC_TIMESTAMP(6)
