-- Proves: nobody else held the key when this owner got it. Takes the key if no lease is in the way, and raises its epoch.
-- In: :name, :owner, :ttl (microseconds), :label, :reason.
-- Out, in the OK packet (LAST_INSERT_ID): the epoch of the grant; or, with bit 63 set, the microseconds that are left of
-- the lease in the way. Sent again by an owner that holds the key, it answers that owner's epoch and prolongs nothing.
-- A new row begins a millisecond ahead of the clock. An epoch that would be further ahead is not given: nothing changes, and the
-- answer is a lease of a millisecond. By more than a second only a clock that was set back is behind: then the epoch counts on.
-- `acquired_at` is assigned first: if no lease is in the way, it is this moment where the key is granted, and the assignments
-- that follow read it. The lease, which they read too, is assigned last.
INSERT INTO {table} (name, acquired_at, label, reason, epoch, owner, expires_at)
VALUES (
  :name, UTC_TIMESTAMP(6), :label, :reason, LAST_INSERT_ID({clock} + 16), :owner, UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND
)
ON DUPLICATE KEY UPDATE
  acquired_at = IF(expires_at <= UTC_TIMESTAMP(6) AND epoch + 1 NOT BETWEEN {clock} + 17 AND {clock} + 16016,
    UTC_TIMESTAMP(6), acquired_at),
  label = IF(expires_at <= UTC_TIMESTAMP(6) AND acquired_at = UTC_TIMESTAMP(6), :label, label),
  reason = IF(expires_at <= UTC_TIMESTAMP(6) AND acquired_at = UTC_TIMESTAMP(6), :reason, reason),
  epoch = CASE
    WHEN expires_at > UTC_TIMESTAMP(6) THEN epoch + 0 * LAST_INSERT_ID(IF(owner = :owner,
      epoch,
      9223372036854775808 + TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at)
    ))
    WHEN acquired_at = UTC_TIMESTAMP(6) THEN LAST_INSERT_ID(GREATEST(epoch + 1, {clock}))
    ELSE epoch + 0 * LAST_INSERT_ID(9223372036854775808 + 1000)
  END,
  owner = IF(expires_at <= UTC_TIMESTAMP(6) AND acquired_at = UTC_TIMESTAMP(6), :owner, owner),
  expires_at = IF(expires_at <= UTC_TIMESTAMP(6) AND acquired_at = UTC_TIMESTAMP(6),
    UTC_TIMESTAMP(6) + INTERVAL :ttl MICROSECOND, expires_at)
