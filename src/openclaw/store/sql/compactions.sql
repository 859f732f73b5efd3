-- name: boundary_before
SELECT seq, entry_id, type, coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash))
FROM entries WHERE entry_no > $1 AND entry_no < $2 AND type IN ('compaction', 'reset')
ORDER BY entry_no DESC LIMIT 1

-- name: customs_between
SELECT coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash))
FROM entries WHERE entry_no > $1 AND entry_no < $2 AND type = 'custom' ORDER BY entry_no

-- name: boundary_after
SELECT seq FROM entries WHERE entry_no > $1 AND entry_no < $2 AND type IN ('compaction', 'reset')
ORDER BY entry_no LIMIT 1

-- name: seq_of_id
SELECT seq FROM entries WHERE entry_no > $1 AND entry_no < $2 AND entry_id = $3 ORDER BY entry_no DESC LIMIT 1

-- name: reset_between
SELECT seq FROM entries WHERE entry_no > $1 AND entry_no < $2 AND type = 'reset' ORDER BY entry_no LIMIT 1

-- name: jump_between
SELECT seq FROM entries
WHERE entry_no > $1 AND entry_no < $2 AND (parent_seq IS NULL OR parent_seq <> seq - 1)
ORDER BY entry_no LIMIT 1
