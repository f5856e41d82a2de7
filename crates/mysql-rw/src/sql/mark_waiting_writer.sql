-- Turns the claim of a writer that found readers into the mark of a waiting writer, which expires after 500 ms.
-- In: :name, :owner, :client. Out: one changed row, or none if the writer has lost its claim.
UPDATE {locks}
SET waiting = :client, writer_expires_at = UTC_TIMESTAMP(6) + INTERVAL 500000 MICROSECOND
WHERE name = :name AND writer = :owner AND waiting IS NULL
