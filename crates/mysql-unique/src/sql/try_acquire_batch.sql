-- Proves, for each row: nobody else held the key when this owner got it. Takes the keys in whose way no lease is, as
-- try_acquire.sql takes one. What became of each is the answer of claimed.sql.
-- In, for each row, sorted by the names: name, label, reason, owner, lease in microseconds.
-- VALUES() is what the row would have if it were new. MySQL has a newer word for it, which MariaDB does not know.
INSERT INTO {table} (name, acquired_at, label, reason, epoch, owner, expires_at)
VALUES {each (?, UTC_TIMESTAMP(6), ?, ?, {clock} + 16, ?, UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND)}
ON DUPLICATE KEY UPDATE
  acquired_at = IF(expires_at <= UTC_TIMESTAMP(6) AND epoch + 1 NOT BETWEEN {clock} + 17 AND {clock} + 16016,
    UTC_TIMESTAMP(6), acquired_at),
  label = IF(expires_at <= UTC_TIMESTAMP(6) AND acquired_at = UTC_TIMESTAMP(6), VALUES(label), label),
  reason = IF(expires_at <= UTC_TIMESTAMP(6) AND acquired_at = UTC_TIMESTAMP(6), VALUES(reason), reason),
  epoch = IF(expires_at <= UTC_TIMESTAMP(6) AND acquired_at = UTC_TIMESTAMP(6), GREATEST(epoch + 1, {clock}), epoch),
  owner = IF(expires_at <= UTC_TIMESTAMP(6) AND acquired_at = UTC_TIMESTAMP(6), VALUES(owner), owner),
  expires_at = IF(expires_at <= UTC_TIMESTAMP(6) AND acquired_at = UTC_TIMESTAMP(6), VALUES(expires_at), expires_at)
