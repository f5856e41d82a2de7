-- Deletes the readers of a range of names whose lease ran out so many microseconds ago, and that no writer had a reason to delete.
WITH gone AS (
  DELETE FROM {schema}.readers
  WHERE name > $1 AND name < $2 AND expires_at + {schema}.lease($3) < clock_timestamp() RETURNING 1
)
SELECT count(*), NULL::bytea FROM gone
