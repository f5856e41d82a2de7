-- Proves: the old owner, or already the new one, still held the key with this epoch. Gives it to the new owner and prolongs the
-- lease, but never shortens it. Of several owners that try, one finds the old owner.
-- Out: as of renew.sql.
CREATE OR REPLACE FUNCTION {schema}.take_over(key bytea, old_owner bytea, its_epoch bigint, new_owner bytea, ttl bigint)
RETURNS integer LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
  moment timestamptz;
BEGIN
  PERFORM {schema}.make_durable();
  PERFORM FROM {schema}.locks AS l WHERE l.name = key FOR UPDATE;
  moment := clock_timestamp();
  UPDATE {schema}.locks AS l SET owner = new_owner, expires_at = greatest(l.expires_at, moment + {schema}.lease(ttl))
  WHERE l.name = key AND l.owner IN (old_owner, new_owner) AND l.epoch = its_epoch AND l.expires_at > moment;
  IF NOT FOUND THEN
    UPDATE {schema}.readers AS r SET owner = new_owner, expires_at = greatest(r.expires_at, moment + {schema}.lease(ttl))
    WHERE r.name = key AND r.owner IN (old_owner, new_owner) AND r.epoch = its_epoch AND NOT r.forced AND r.expires_at > moment;
  END IF;
  IF FOUND THEN
    RETURN 1;
  END IF;
  RETURN CASE WHEN EXISTS (SELECT FROM {schema}.locks AS l WHERE l.name = key AND l.forced = old_owner)
    OR EXISTS (SELECT FROM {schema}.readers AS r WHERE r.name = key AND r.owner = old_owner AND r.forced) THEN 2 ELSE 0 END;
END $$;
