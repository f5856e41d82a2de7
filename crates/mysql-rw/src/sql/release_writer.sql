-- Proves: this writer held the key until now, or had its mark there. Frees the key, or takes the mark back. If readers have
-- booked a turn, the turn begins.
-- In: :name, :owner. Out: one changed row, or none if this writer does not hold the key.
UPDATE {locks} SET waiting = NULL, writer = NULL
WHERE name = :name AND writer = :owner AND writer_expires_at > UTC_TIMESTAMP(6)
