-- MARK turns a claim that found readers after all into a writer's mark with a short lease.
UPDATE {locks}
SET waiting = :client, writer_expires_at = UTC_TIMESTAMP(6) + INTERVAL 500000 MICROSECOND
WHERE name = :name AND writer = :owner AND waiting IS NULL
