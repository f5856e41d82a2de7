-- Answers who holds these keys, after a batch of claims.
-- In: the name of each row. Out, for each held key: name, owner, epoch, the microseconds that are left of the lease.
SELECT name, owner, epoch, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at)
FROM {table} FORCE INDEX (PRIMARY) WHERE ({any name = ?}) AND expires_at > UTC_TIMESTAMP(6)
