-- Deletes the rows of up to 1,000 free keys of a range of names whose last grant is so many microseconds ago. The epoch itself says
-- when that was. Once the clock is past it, the clock alone seeds a larger one, so that tokens keep growing without the row.
-- In: the name after which to begin, the name behind the last, and the age. Out: how many, and the last of them: so that the rows
-- before it that stay are not read again for the next 1,000. By their places: by their names, they would be joined with all rows.
WITH gone AS (
  DELETE FROM {schema}.locks WHERE ctid = ANY (ARRAY(
    SELECT l.ctid FROM {schema}.locks AS l
    WHERE l.name > $1 AND l.name < $2 AND (l.owner IS NULL OR l.expires_at <= clock_timestamp())
      AND l.epoch < {schema}.epoch_at(clock_timestamp() - {schema}.lease($3))
      AND NOT EXISTS (SELECT FROM {schema}.readers AS r WHERE r.name = l.name)
    ORDER BY l.name LIMIT 1000 FOR UPDATE OF l SKIP LOCKED
  )) RETURNING name
)
SELECT (SELECT count(*) FROM gone), (SELECT name FROM gone ORDER BY name DESC LIMIT 1)
