-- Proves, for a zero: no reader holds the key that this writer has claimed. It looks at rows alone: a reader holds as long as
-- its row exists.
-- In: :name, :owner. Out: the number of readers, and the number of rows whose lease ran out, with those of readers that
-- were released by force; no row if this writer has lost its claim.
SELECT COUNT(IF(r.forced IS NULL, r.name, NULL)), COUNT(IF(r.expires_at <= UTC_TIMESTAMP(6), 1, NULL))
FROM {locks} AS l LEFT JOIN {readers} AS r ON r.name = l.name
WHERE l.name = :name AND l.writer = :owner AND l.waiting IS NULL
GROUP BY l.name
