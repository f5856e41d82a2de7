-- Answers the readers that this forced release has ended, and no other: of two at one moment, each has ended some.
-- In: :name, :by. Out: as inspect.sql.
SELECT name, 0, epoch, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at) AS remains, label, reason
FROM {readers}
WHERE name = :name AND forced = :by
