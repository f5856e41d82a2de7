-- The tables: a row for each key, which stays when its key is free, and a row for each reader. Names, labels and reasons are
-- bytes: no collation merges two keys, and no encoding of the database refuses a text.
-- Whatever reads or changes what is known of a key locks its row in `locks` first, and what needs the rows of several keys locks
-- them in the order of their names: then each statement that follows sees all that was committed before, and no two batches
-- wait for each other crosswise.
-- Who owns the schema need not be able to create one.
DO $$ BEGIN
  IF to_regnamespace('{schema}') IS NULL THEN
    CREATE SCHEMA {schema};
  ELSIF to_regprocedure('{schema}.version()') IS NOT NULL THEN
    -- Programs of another version call its functions, which are not to be replaced.
    IF {schema}.version() <> 1 THEN
      RAISE EXCEPTION 'its version is %, and this program needs 1: run a program of that version', {schema}.version();
    END IF;
  END IF;
END $$;

CREATE TABLE IF NOT EXISTS {schema}.locks (
  name bytea PRIMARY KEY,
  epoch bigint NOT NULL,
  -- The writer; NULL if there is none. When the lease of the last writer ends, or ended.
  owner bytea,
  expires_at timestamptz NOT NULL DEFAULT '-infinity',
  label bytea,
  reason bytea,
  -- The owner that was released by force last.
  forced bytea,
  -- Until then a release is notified: somebody waits.
  waited_until timestamptz NOT NULL DEFAULT '-infinity',
  -- The locker whose writer waits for readers to leave, and until when its mark holds back others.
  waiting bytea,
  writer_waits_until timestamptz NOT NULL DEFAULT '-infinity',
  -- Until when a reader that waits is known of; and until when readers have their turn after a writer.
  readers_wait_until timestamptz NOT NULL DEFAULT '-infinity',
  readers_turn_until timestamptz NOT NULL DEFAULT '-infinity',
  -- Whether there may be readers. No: there is no reader whose lease has not ended.
  has_readers boolean NOT NULL DEFAULT true
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS {schema}.readers (
  name bytea,
  owner bytea,
  epoch bigint NOT NULL,
  expires_at timestamptz NOT NULL,
  label bytea,
  reason bytea,
  forced boolean NOT NULL DEFAULT false,
  PRIMARY KEY (name, owner)
);

-- Who holds which key now, with the microseconds that are left of the lease.
CREATE OR REPLACE VIEW {schema}.holders AS
SELECT name, true AS exclusive, epoch,
  (extract(epoch FROM expires_at - clock_timestamp()) * 1000000)::bigint AS remaining, label, reason
FROM {schema}.locks WHERE owner IS NOT NULL AND expires_at > clock_timestamp()
UNION ALL
SELECT name, false, epoch, (extract(epoch FROM expires_at - clock_timestamp()) * 1000000)::bigint, label, reason
FROM {schema}.readers WHERE NOT forced AND expires_at > clock_timestamp();

CREATE OR REPLACE FUNCTION {schema}.version() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 1';

-- The epoch of a moment: sixteenths of a millisecond since 1970.
CREATE OR REPLACE FUNCTION {schema}.epoch_at(moment timestamptz) RETURNS bigint LANGUAGE sql IMMUTABLE
AS 'SELECT floor(extract(epoch FROM moment) * 16000)::bigint';

-- A lease of so many microseconds.
CREATE OR REPLACE FUNCTION {schema}.lease(ttl bigint) RETURNS interval LANGUAGE sql IMMUTABLE
AS $$SELECT ttl * interval '1 microsecond'$$;

-- Whether a writer finds nobody and nothing in its way, and an epoch that is not too far ahead of the clock: see claim().
CREATE OR REPLACE FUNCTION {schema}.is_free(l {schema}.locks, moment timestamptz, clock bigint) RETURNS boolean LANGUAGE sql IMMUTABLE
AS $$SELECT NOT l.has_readers AND (l.owner IS NULL OR l.expires_at <= moment AND l.readers_wait_until <= moment)
  AND l.writer_waits_until <= moment AND l.readers_turn_until <= moment AND l.epoch < clock + 16$$;

-- Whether nobody is known to wait for the key.
CREATE OR REPLACE FUNCTION {schema}.is_quiet(l {schema}.locks, moment timestamptz) RETURNS boolean LANGUAGE sql IMMUTABLE
AS 'SELECT l.waited_until <= moment AND l.readers_wait_until <= moment';

-- Where commits do not wait for the disk, a crash would forget a grant that its holder knows of: this one waits.
CREATE OR REPLACE FUNCTION {schema}.make_durable() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('synchronous_commit') = 'off' THEN
    PERFORM set_config('synchronous_commit', 'local', true);
  END IF;
END $$;

-- Wakes those who wait for the key, if there are any, when the transaction is committed.
CREATE OR REPLACE FUNCTION {schema}.wake(l {schema}.locks) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF l.waited_until > clock_timestamp() THEN
    PERFORM pg_notify('leasehold_' || substr(encode(sha256('{schema}:'::bytea || l.name), 'hex'), 1, 40), '');
  END IF;
END $$;

-- Ends the lease of the writer of a locked key. Readers that wait have their turn.
CREATE OR REPLACE FUNCTION {schema}.end_writer(l {schema}.locks, moment timestamptz) RETURNS {schema}.locks LANGUAGE plpgsql AS $$
BEGIN
  IF l.readers_wait_until > moment THEN
    l.readers_turn_until := moment + interval '100 milliseconds';
  END IF;
  l.owner := NULL;
  l.expires_at := least(l.expires_at, moment);
  RETURN l;
END $$;

-- Writes down what has changed of a locked key.
CREATE OR REPLACE FUNCTION {schema}.store(l {schema}.locks) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {schema}.locks SET
    epoch = l.epoch, owner = l.owner, expires_at = l.expires_at, label = l.label, reason = l.reason, forced = l.forced,
    waited_until = l.waited_until, waiting = l.waiting, writer_waits_until = l.writer_waits_until,
    readers_wait_until = l.readers_wait_until, readers_turn_until = l.readers_turn_until, has_readers = l.has_readers
  WHERE name = l.name;
END $$;
