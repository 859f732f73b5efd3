-- name: mark
UPDATE windows SET purging_at = $1, deleted_at = coalesce(deleted_at, $1), saved = NULL
WHERE window_no = $2 AND purging_at IS NULL RETURNING window_no

-- name: next_marked
SELECT window_no, session_key FROM windows WHERE purging_at IS NOT NULL AND purged_at IS NULL
ORDER BY window_no LIMIT 1

-- name: forget_pending
DELETE FROM search_pending
WHERE window_no IN (SELECT window_no FROM windows WHERE purging_at IS NOT NULL AND purged_at IS NULL)
RETURNING search_no

-- name: last_indexed
SELECT coalesce(max(search_no), 0) FROM search_rows

-- name: indexed_between
SELECT r.search_no FROM search_rows r
JOIN windows w ON w.window_no = r.window_no
WHERE r.search_no > $1 AND r.search_no <= $2 AND w.purging_at IS NOT NULL AND w.purged_at IS NULL
ORDER BY r.search_no

-- name: said_at
SELECT coalesce(e.body, (SELECT b.body FROM blobs b WHERE b.hash = e.blob_hash)) FROM search_rows r
JOIN entries e ON e.entry_no = r.window_no * 4294967296 + r.seq
WHERE r.search_no = $1

-- name: unindex_words
-- What the index was given: the word of the window, then the words.
INSERT INTO search (search, rowid, words)
VALUES ('delete', $1, (SELECT char(57344) || window_no || ' ' FROM search_rows WHERE search_no = $1) || $2)

-- name: unindex_now
-- The index keeps what it shall forget until the commit, and forgets it then. Asked to do it now, its work
-- counts in the slice that caused it.
INSERT INTO search (search) VALUES ('flush')

-- name: unindex_row
DELETE FROM search_rows WHERE search_no = $1

-- name: first_entries
SELECT entry_no, run_id, blob_hash FROM entries WHERE entry_no > $1 AND entry_no < $2 ORDER BY entry_no LIMIT $3

-- name: remove_entry
DELETE FROM entries WHERE entry_no = $1

-- name: release_blob
UPDATE blobs SET refs = refs - 1 WHERE hash = $1

-- name: remove_blob
DELETE FROM blobs WHERE hash = $1 AND refs = 0 RETURNING hash

-- name: remove_input
DELETE FROM inbox WHERE run_id = $1 AND session_key = $2 AND state <> 'queued' RETURNING run_id

-- name: remove_run
DELETE FROM runs WHERE run_id = $1 AND session_key = $2 AND state = 'ended' RETURNING run_id

-- name: finish
UPDATE windows SET purged_at = $1 WHERE window_no = $2

-- name: unlink_places
DELETE FROM session_conversations WHERE session_key = $1
  AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.session_key = $1)
  AND NOT EXISTS (SELECT 1 FROM windows w WHERE w.session_key = $1 AND w.purged_at IS NULL)
  AND NOT EXISTS (SELECT 1 FROM archives a WHERE a.session_key = $1)

-- name: forget_source
DELETE FROM window_sources WHERE window_no = $1

-- name: forget_ids
DELETE FROM id_changes WHERE window_no = $1
