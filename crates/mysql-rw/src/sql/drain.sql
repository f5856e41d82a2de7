-- DRAIN counts the readers that are left after a claim, and the rows whose lease ran out, also those of readers that
-- were released by force. No row: the claim is not ours any more. It looks at rows alone: a reader is there as long as
-- its row is.
SELECT COUNT(IF(r.forced = 0, 1, NULL)), COUNT(IF(r.expires_at <= UTC_TIMESTAMP(6), 1, NULL))
FROM {locks} AS l LEFT JOIN {readers} AS r ON r.name = l.name
WHERE l.name = :name AND l.writer = :owner AND l.waiting IS NULL
GROUP BY l.name
