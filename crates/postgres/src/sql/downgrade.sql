-- Proves: this writer held the key with this epoch until now. Makes a reader of it, and lets others in.
-- Out: the epoch of the reader, or NULL. It may be one more ahead of the clock than that of a claim may be: the next claim waits.
CREATE OR REPLACE FUNCTION {schema}.downgrade(
  key bytea, writer bytea, its_epoch bigint, new_owner bytea, ttl bigint, label bytea, reason bytea
) RETURNS bigint LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
  l {schema}.locks;
  moment timestamptz;
BEGIN
  PERFORM {schema}.make_durable();
  SELECT * INTO l FROM {schema}.locks AS k WHERE k.name = key FOR UPDATE;
  moment := clock_timestamp();
  IF l.owner = writer AND l.epoch = its_epoch AND l.expires_at > moment THEN
    l := {schema}.end_writer(l, moment);
    l.has_readers := true;
    l.epoch := greatest(l.epoch + 1, {schema}.epoch_at(moment));
    INSERT INTO {schema}.readers VALUES (key, new_owner, l.epoch, moment + {schema}.lease(ttl), label, reason);
    PERFORM {schema}.store(l), {schema}.wake(l);
    RETURN l.epoch;
  END IF;
  RETURN NULL;
END $$;
