-- Frees the key whoever holds it, or, with an epoch, ends the grant with this epoch alone; notes the owners, so that their next
-- renewals are told. An owner whose lease had ended by itself is told that. Answers whose grants it ended, as the view does.
CREATE OR REPLACE FUNCTION {schema}.force_release(key bytea, its_epoch bigint) RETURNS SETOF {schema}.holders
LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
  l {schema}.locks;
  is_reader boolean;
BEGIN
  SELECT * INTO l FROM {schema}.locks AS k WHERE k.name = key FOR UPDATE;
  RETURN QUERY SELECT * FROM {schema}.holders AS h WHERE h.name = key AND (its_epoch IS NULL OR h.epoch = its_epoch);
  IF FOUND THEN
    UPDATE {schema}.readers AS r SET forced = true
    WHERE r.name = key AND (its_epoch IS NULL OR r.epoch = its_epoch) AND r.expires_at > clock_timestamp();
    is_reader := FOUND AND its_epoch IS NOT NULL;
    IF l.owner IS NOT NULL AND l.expires_at > clock_timestamp() AND NOT is_reader THEN
      l.forced := l.owner;
      l := {schema}.end_writer(l, clock_timestamp());
    END IF;
    PERFORM {schema}.store(l), {schema}.wake(l);
  END IF;
END $$;
