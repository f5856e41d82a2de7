-- DRAIN counts the readers that are left after a claim, and those of them whose lease ran out. No row: the claim is
-- not ours any more. It looks at rows alone: a reader is there as long as its row is.
SELECT
  (SELECT COUNT(*) FROM {readers} AS r WHERE r.name = l.name AND r.forced = 0),
  (SELECT COUNT(*) FROM {readers} AS r
    WHERE r.name = l.name AND r.forced = 0 AND r.expires_at <= UTC_TIMESTAMP(6))
FROM {locks} AS l
WHERE l.name = :name AND l.writer = :owner AND l.waiting IS NULL
