-- Proves: nobody else held the key when this owner got it. Takes the key if no lease is in the way, and raises its epoch.
-- In: :name, :owner, :ttl (microseconds), :label, :reason.
-- Out, in the OK packet (LAST_INSERT_ID): the epoch of the grant; or, with bit 63 set, the microseconds that are left of
-- the lease in the way. Sent again by an owner that holds the key, it answers that owner's epoch and prolongs nothing.
-- The columns that the conditions read are assigned last, because MySQL assigns from left to right.
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
