-- name: add_pending
INSERT INTO search_pending (search_no, window_no, seq, words)
VALUES (1 + max(coalesce((SELECT max(search_no) FROM search_pending), 0),
  coalesce((SELECT max(search_no) FROM search_rows), 0)), $1, $2, $3)
RETURNING search_no

-- name: fold_words
INSERT INTO search (rowid, words) SELECT search_no, words FROM search_pending ORDER BY search_no

-- name: fold_rows
INSERT INTO search_rows (search_no, window_no, seq) SELECT search_no, window_no, seq FROM search_pending

-- name: clear_pending
DELETE FROM search_pending

-- name: pending
SELECT p.words, s.session_key, w.session_id, e.seq, e.entry_id, e.role, e.created_at,
  coalesce(e.body, (SELECT b.body FROM blobs b WHERE b.hash = e.blob_hash))
FROM search_pending p
JOIN windows w ON w.window_no = p.window_no AND w.deleted_at IS NULL
JOIN sessions s ON s.session_key = w.session_key
JOIN entries e ON e.entry_no = p.window_no * 4294967296 + p.seq
WHERE (CAST($1 AS TEXT) IS NULL OR s.agent_id = $1) AND (CAST($2 AS TEXT) IS NULL OR s.session_key = $2)
ORDER BY p.search_no DESC

-- name: find
SELECT s.session_key, w.session_id, e.seq, e.entry_id, e.role, e.created_at,
  coalesce(e.body, (SELECT b.body FROM blobs b WHERE b.hash = e.blob_hash))
FROM search JOIN search_rows r ON r.search_no = search.rowid
JOIN windows w ON w.window_no = r.window_no AND w.deleted_at IS NULL
JOIN sessions s ON s.session_key = w.session_key
JOIN entries e ON e.entry_no = r.window_no * 4294967296 + r.seq
WHERE search.words MATCH $1 AND (CAST($2 AS TEXT) IS NULL OR s.agent_id = $2)
  AND (CAST($3 AS TEXT) IS NULL OR s.session_key = $3)
ORDER BY search.rowid DESC LIMIT $4
