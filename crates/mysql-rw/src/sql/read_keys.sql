-- Answers which of these keys are read.
-- In: the name of each key. Out: the names of those with readers, as often as they have readers.
SELECT name FROM {readers} FORCE INDEX (PRIMARY)
WHERE ({any name = ?}) AND forced IS NULL AND expires_at > UTC_TIMESTAMP(6)
