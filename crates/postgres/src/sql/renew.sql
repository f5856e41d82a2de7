-- Proves: each of these owners still holds its key. Prolongs their leases, and never shortens one; a lease that ran out stays over.
-- In: name, owner and lease in microseconds of each. Out, for each, in their order: 1 if it holds, 2 if it was released by force,
-- else 0; NULL, if there are several and another session has locked this row: so it keeps none of the others waiting.
CREATE OR REPLACE FUNCTION {schema}.renew(names bytea[], owners bytea[], ttls bigint[]) RETURNS SETOF integer
LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
  moment timestamptz;
  locked bytea[];
BEGIN
  PERFORM {schema}.make_durable();
  IF cardinality(names) = 1 THEN
    locked := ARRAY(SELECT l.name FROM {schema}.locks AS l WHERE l.name = names[1] FOR UPDATE);
  ELSE
    locked := ARRAY(SELECT l.name FROM {schema}.locks AS l WHERE l.name = ANY (names) ORDER BY l.name FOR UPDATE SKIP LOCKED);
  END IF;
  moment := clock_timestamp();
  UPDATE {schema}.locks AS l SET expires_at = greatest(l.expires_at, moment + {schema}.lease(g.ttl))
  FROM (
    SELECT name, owner, max(ttl) AS ttl FROM unnest(names, owners, ttls) AS g (name, owner, ttl)
    JOIN unnest(locked) AS k (name) USING (name) GROUP BY name, owner
  ) AS g
  WHERE l.name = g.name AND l.owner = g.owner AND l.expires_at > moment;
  UPDATE {schema}.readers AS r SET expires_at = greatest(r.expires_at, moment + {schema}.lease(g.ttl))
  FROM (
    SELECT name, owner, max(ttl) AS ttl FROM unnest(names, owners, ttls) AS g (name, owner, ttl)
    JOIN unnest(locked) AS k (name) USING (name) GROUP BY name, owner
  ) AS g
  WHERE r.name = g.name AND r.owner = g.owner AND r.expires_at > moment AND NOT r.forced;
  RETURN QUERY
  SELECT CASE
    WHEN l.name IS NOT NULL AND k.name IS NULL THEN NULL
    WHEN l.owner = g.owner AND l.expires_at > moment OR r.expires_at > moment AND NOT r.forced THEN 1
    WHEN l.forced = g.owner OR r.forced THEN 2
    ELSE 0
  END
  FROM unnest(names, owners) WITH ORDINALITY AS g (name, owner, place)
  LEFT JOIN unnest(locked) AS k (name) ON k.name = g.name
  LEFT JOIN {schema}.locks AS l ON l.name = g.name
  LEFT JOIN {schema}.readers AS r ON r.name = g.name AND r.owner = g.owner
  ORDER BY g.place;
END $$;
