-- Proves, for each key: nobody else held it when this owner got it; beside a reader there may be others.
-- In: the locker; and, for each claim, sorted by the names: name, owner, whether it is for a reader, whether its caller waits,
-- lease in microseconds, label, reason. Out, for each: the epoch of the grant, or the microseconds that are left of what is in
-- the way; neither, if there are several and another session has locked this row: so it keeps none of the others waiting.
-- A claim that is sent again by an owner that holds the key answers its epoch, and prolongs nothing.
-- A new row begins a millisecond ahead of the clock. An epoch that would be further ahead is not given: nothing changes, and the
-- answer is a lease of a millisecond. By more than a second only a clock that was set back is behind: then the epoch counts on.
-- A writer that waits for readers leaves a mark for 1.5 s, which refuses new readers and the writers of other lockers. A reader
-- that waits is known of for 2.5 s, and so has a turn after the writer: 100 ms, or 20 ms from the first reader on, in which no
-- writer is granted or leaves a mark. Whoever waits asks once a second at least.
CREATE OR REPLACE FUNCTION {schema}.claim(
  client bytea, names bytea[], owners bytea[], shared boolean[], waits boolean[], ttls bigint[], labels bytea[], reasons bytea[]
) RETURNS TABLE (granted bigint, busy bigint) LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
  before {schema}.locks;
  l {schema}.locks;
  moment timestamptz;
  clock bigint;
  until timestamptz;
  any_granted boolean;
  alone boolean := cardinality(names) = 1;
  taken bigint[];
BEGIN
  moment := clock_timestamp();
  clock := {schema}.epoch_at(moment);
  -- One statement takes the keys that are plainly free. The loop looks at the others.
  IF alone THEN
    UPDATE {schema}.locks AS k
    SET epoch = greatest(k.epoch + 1, clock), owner = owners[1], expires_at = moment + {schema}.lease(ttls[1]), label = labels[1], reason = reasons[1]
    WHERE k.name = names[1] AND NOT shared[1] AND {schema}.is_free(k, moment, clock)
    RETURNING ARRAY[k.epoch] INTO taken;
  ELSE
    WITH free AS MATERIALIZED (
      SELECT g.*, k.ctid AS row
      FROM unnest(names, owners, shared, ttls, labels, reasons) WITH ORDINALITY AS g (name, owner, shared, ttl, label, reason, place)
      JOIN {schema}.locks AS k USING (name) WHERE NOT g.shared AND {schema}.is_free(k, moment, clock)
      ORDER BY g.place FOR UPDATE OF k SKIP LOCKED
    ), granted AS (
      UPDATE {schema}.locks AS k
      SET epoch = greatest(k.epoch + 1, clock), owner = g.owner, expires_at = moment + {schema}.lease(g.ttl), label = g.label, reason = g.reason
      FROM free AS g WHERE k.ctid = g.row RETURNING g.place, k.epoch
    )
    SELECT array_agg(g.epoch ORDER BY p.place) INTO taken
    FROM generate_series(1, cardinality(names)) AS p (place) LEFT JOIN granted AS g USING (place);
  END IF;
  any_granted := false;
  FOR i IN 1 .. cardinality(names) LOOP
    granted := taken[i];
    IF granted IS NOT NULL THEN
      any_granted := true;
      busy := NULL;
      RETURN NEXT;
      CONTINUE;
    END IF;
    granted := NULL;
    busy := NULL;
    until := NULL;
    LOOP
      IF alone THEN
        SELECT * INTO l FROM {schema}.locks AS k WHERE k.name = names[i] FOR UPDATE;
      ELSE
        SELECT * INTO l FROM {schema}.locks AS k WHERE k.name = names[i] FOR UPDATE SKIP LOCKED;
      END IF;
      EXIT WHEN FOUND OR NOT alone AND EXISTS (SELECT FROM {schema}.locks AS k WHERE k.name = names[i]);
      INSERT INTO {schema}.locks (name, epoch) VALUES (names[i], {schema}.epoch_at(clock_timestamp()) + 15) ON CONFLICT DO NOTHING;
    END LOOP;
    IF l.name IS NULL THEN
      RETURN NEXT;
      CONTINUE;
    END IF;
    before := l;
    moment := clock_timestamp();
    clock := {schema}.epoch_at(moment);

    -- Where the clock was set back, marks would be ahead of it by as much, and keep all out although nobody holds the key.
    l.writer_waits_until := least(l.writer_waits_until, moment + interval '1500 milliseconds');
    l.readers_wait_until := least(l.readers_wait_until, moment + interval '2500 milliseconds');
    l.readers_turn_until := least(l.readers_turn_until, moment + interval '100 milliseconds');
    IF l.owner IS NOT NULL AND l.expires_at <= moment THEN
      l := {schema}.end_writer(l, moment);
    END IF;
    IF l.owner IS NOT NULL THEN
      until := l.expires_at;
      IF l.owner = owners[i] AND NOT shared[i] THEN
        granted := l.epoch;
      END IF;
    ELSIF shared[i] THEN
      until := l.writer_waits_until;
      SELECT r.epoch INTO granted FROM {schema}.readers AS r
      WHERE r.name = l.name AND r.owner = owners[i] AND NOT r.forced AND r.expires_at > moment;
    ELSE
      DELETE FROM {schema}.readers AS r WHERE r.name = l.name AND r.expires_at <= moment;
      SELECT max(r.expires_at) INTO until FROM {schema}.readers AS r WHERE r.name = l.name AND NOT r.forced;
      IF until IS NULL THEN
        l.has_readers := false;
        until := greatest(l.readers_turn_until, CASE WHEN substr(l.waiting, 1, 16) <> client THEN l.writer_waits_until END);
      ELSIF waits[i] AND l.readers_turn_until <= moment AND (substr(l.waiting, 1, 16) = client OR l.writer_waits_until <= moment) THEN
        l.waiting := client || owners[i];
        l.writer_waits_until := moment + interval '1500 milliseconds';
      END IF;
    END IF;

    IF granted IS NOT NULL THEN
      any_granted := true;
    ELSIF until > moment THEN
      busy := ceil(extract(epoch FROM until - moment) * 1000000);
      IF waits[i] AND l.waited_until < moment + interval '1200 milliseconds' THEN
        l.waited_until := moment + interval '2500 milliseconds';
      END IF;
      IF waits[i] AND shared[i] AND l.readers_wait_until < moment + interval '1200 milliseconds' THEN
        l.readers_wait_until := moment + interval '2500 milliseconds';
      END IF;
    ELSIF l.epoch + 1 BETWEEN clock + 17 AND clock + 16016 THEN
      busy := 1000;
    ELSE
      any_granted := true;
      l.epoch := greatest(l.epoch + 1, clock);
      granted := l.epoch;
      IF shared[i] THEN
        l.has_readers := true;
        l.readers_turn_until := least(l.readers_turn_until, moment + interval '20 milliseconds');
        INSERT INTO {schema}.readers (name, owner, epoch, expires_at, label, reason)
        VALUES (l.name, owners[i], l.epoch, moment + {schema}.lease(ttls[i]), labels[i], reasons[i])
        ON CONFLICT (name, owner) DO UPDATE
        SET epoch = excluded.epoch, expires_at = excluded.expires_at, label = excluded.label, reason = excluded.reason, forced = false;
      ELSE
        l.owner := owners[i];
        l.expires_at := moment + {schema}.lease(ttls[i]);
        l.label := labels[i];
        l.reason := reasons[i];
        l.waiting := NULL;
        l.writer_waits_until := '-infinity';
      END IF;
    END IF;
    IF l IS DISTINCT FROM before THEN
      PERFORM {schema}.store(l);
    END IF;
    RETURN NEXT;
  END LOOP;
  IF any_granted THEN
    PERFORM {schema}.make_durable();
  ELSE
    -- A refusal that a crash forgets is no loss: it need not wait for the disk.
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
END $$;
