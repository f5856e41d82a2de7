-- CLAIM takes the key if nobody holds it. It answers in the OK packet: the epoch, or, with bit 63 set, how
-- many microseconds are left of the lease that stands in the way. Repeated by its owner while it holds, it answers the
-- same again and prolongs nothing. The columns that the conditions read are assigned last.
INSERT INTO {table} (name, tenure, label, reason, acquired_at, owner, expires_at)
VALUES (
  :name,
  LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000),
  :label, :reason, UTC_TIMESTAMP(6), :owner,
  UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND
)
ON DUPLICATE KEY UPDATE
  tenure = IF(expires_at <= UTC_TIMESTAMP(6),
    LAST_INSERT_ID(GREATEST(
      tenure + 1,
      CAST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000 AS UNSIGNED)
    )),
    tenure + 0 * LAST_INSERT_ID(IF(owner = :owner,
      tenure,
      9223372036854775808 + TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at)
    ))
  ),
  label = IF(expires_at <= UTC_TIMESTAMP(6), :label, label),
  reason = IF(expires_at <= UTC_TIMESTAMP(6), :reason, reason),
  acquired_at = IF(expires_at <= UTC_TIMESTAMP(6), UTC_TIMESTAMP(6), acquired_at),
  owner = IF(expires_at <= UTC_TIMESTAMP(6), :owner, owner),
  expires_at = IF(expires_at <= UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND, expires_at)
