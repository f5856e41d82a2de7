-- LET_GO frees the key if this owner holds it. The row stays, and with it the epoch.
UPDATE {table} SET expires_at = '2000-01-01'
WHERE name = :name AND owner = :owner AND expires_at > UTC_TIMESTAMP(6)
