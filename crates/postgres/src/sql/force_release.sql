-- Frees the key whoever holds it, and notes the owners, so that their next renewals are told. Answers who held it, as the view does.
CREATE OR REPLACE FUNCTION {schema}.force_release(key bytea) RETURNS SETOF {schema}.holders
LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
  l {schema}.locks;
BEGIN
  SELECT * INTO l FROM {schema}.locks AS k WHERE k.name = key FOR UPDATE;
  RETURN QUERY SELECT * FROM {schema}.holders AS h WHERE h.name = key;
  IF FOUND THEN
    IF l.owner IS NOT NULL THEN
      l.forced := l.owner;
      l := {schema}.end_writer(l, clock_timestamp());
    END IF;
    UPDATE {schema}.readers AS r SET forced = true WHERE r.name = key;
    PERFORM {schema}.store(l), {schema}.wake(l);
  END IF;
END $$;
