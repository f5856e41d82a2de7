-- Proves, for each key that it frees: this owner held it until now. The row of a key stays, and with it the epoch.
-- In: name and owner of each, sorted by the names. Out, for each: 1 if it was freed, 2 if the owner was released by force, else 0;
-- NULL, if there are several and another session has locked this row: so it keeps none of the others waiting.
CREATE OR REPLACE FUNCTION {schema}.release(names bytea[], owners bytea[]) RETURNS SETOF integer
LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
  l {schema}.locks;
  moment timestamptz := clock_timestamp();
  freed boolean[];
BEGIN
  -- One statement frees the keys that nobody waits for. The loop looks at the others.
  IF cardinality(names) = 1 THEN
    UPDATE {schema}.locks AS k SET owner = NULL, expires_at = moment
    WHERE k.name = names[1] AND k.owner = owners[1] AND k.expires_at > moment AND {schema}.is_quiet(k, moment)
    RETURNING ARRAY[true] INTO freed;
  ELSE
    WITH held AS MATERIALIZED (
      SELECT g.place, k.ctid AS row FROM unnest(names, owners) WITH ORDINALITY AS g (name, owner, place)
      JOIN {schema}.locks AS k USING (name) WHERE k.owner = g.owner AND k.expires_at > moment AND {schema}.is_quiet(k, moment)
      ORDER BY g.place FOR UPDATE OF k SKIP LOCKED
    ), done AS (
      UPDATE {schema}.locks AS k SET owner = NULL, expires_at = moment FROM held AS g WHERE k.ctid = g.row RETURNING g.place
    )
    SELECT array_agg(g.place IS NOT NULL ORDER BY p.place) INTO freed
    FROM generate_series(1, cardinality(names)) AS p (place) LEFT JOIN done AS g USING (place);
  END IF;
  FOR i IN 1 .. cardinality(names) LOOP
    IF freed[i] THEN
      RETURN NEXT 1;
      CONTINUE;
    END IF;
    IF cardinality(names) = 1 THEN
      SELECT * INTO l FROM {schema}.locks AS k WHERE k.name = names[i] FOR UPDATE;
    ELSE
      SELECT * INTO l FROM {schema}.locks AS k WHERE k.name = names[i] FOR UPDATE SKIP LOCKED;
      IF NOT FOUND AND EXISTS (SELECT FROM {schema}.locks AS k WHERE k.name = names[i]) THEN
        RETURN NEXT NULL;
        CONTINUE;
      END IF;
    END IF;
    moment := clock_timestamp();
    IF l.owner = owners[i] AND l.expires_at > moment THEN
      PERFORM {schema}.store({schema}.end_writer(l, moment)), {schema}.wake(l);
      RETURN NEXT 1;
      CONTINUE;
    END IF;
    -- The mark of a waiting writer, by the owner of its last claim: nobody of its locker waits any more.
    IF substr(l.waiting, 17) = owners[i] THEN
      l.waiting := NULL;
      l.writer_waits_until := '-infinity';
      PERFORM {schema}.store(l), {schema}.wake(l);
    END IF;
    DELETE FROM {schema}.readers AS r
    WHERE r.name = names[i] AND r.owner = owners[i] AND NOT r.forced AND r.expires_at > moment;
    IF FOUND THEN
      PERFORM {schema}.wake(l);
      RETURN NEXT 1;
    ELSE
      RETURN NEXT CASE WHEN l.forced = owners[i]
        OR EXISTS (SELECT FROM {schema}.readers AS r WHERE r.name = names[i] AND r.owner = owners[i] AND r.forced) THEN 2 ELSE 0 END;
    END IF;
  END LOOP;
END $$;
