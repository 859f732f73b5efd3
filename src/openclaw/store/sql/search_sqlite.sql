-- name: add_pending
INSERT INTO search_pending (search_no, window_no, seq, words)
VALUES (1 + max(coalesce((SELECT max(search_no) FROM search_pending), 0),
  coalesce((SELECT max(search_no) FROM search_rows), 0)), $1, $2, $3)
RETURNING search_no

-- name: fold_words
-- The window is a word of its own, behind a letter that no text has: a search in few windows reads only theirs.
INSERT INTO search (rowid, words)
SELECT search_no, char(57344) || window_no || ' ' || words FROM search_pending ORDER BY search_no

-- name: fold_rows
INSERT INTO search_rows (search_no, window_no, seq) SELECT search_no, window_no, seq FROM search_pending

-- name: clear_pending
DELETE FROM search_pending

-- name: pending
SELECT p.words, p.search_no, p.window_no, p.seq, w.session_id, s.session_key, s.agent_id, s.spawned_by,
  s.parent_session_key, o.parent_key, CASE WHEN s.archived_at IS NULL THEN 0 ELSE 1 END
FROM search_pending p
JOIN windows w ON w.window_no = p.window_no AND w.deleted_at IS NULL
JOIN sessions s ON s.session_key = w.session_key
LEFT JOIN spawns o ON o.child_key = s.session_key
ORDER BY p.search_no DESC

-- name: find
-- $1 the phrases, $2 the words of windows to stay in or NULL, $3 only what is older than this number.
SELECT r.search_no, r.window_no, r.seq, w.session_id, s.session_key, s.agent_id, s.spawned_by,
  s.parent_session_key, o.parent_key, CASE WHEN s.archived_at IS NULL THEN 0 ELSE 1 END
FROM search JOIN search_rows r ON r.search_no = search.rowid
LEFT JOIN windows w ON w.window_no = r.window_no AND w.deleted_at IS NULL
LEFT JOIN sessions s ON s.session_key = w.session_key
LEFT JOIN spawns o ON o.child_key = s.session_key
WHERE search.words MATCH $1 || coalesce(' AND (' || replace($2, '" "', '" OR "') || ')', '') AND search.rowid < $3
ORDER BY search.rowid DESC LIMIT $4

-- name: said
SELECT entry_id, role, created_at, coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash))
FROM entries WHERE entry_no = $1 * 4294967296 + $2

-- name: windows_of_session
SELECT window_no FROM windows WHERE session_key = $1 AND deleted_at IS NULL LIMIT $2

-- name: windows_of_tree
SELECT w.window_no FROM (
  SELECT session_key FROM sessions WHERE spawned_by = $1
  UNION SELECT session_key FROM sessions WHERE parent_session_key = $1
  UNION SELECT child_key FROM spawns WHERE parent_key = $1
) t JOIN windows w ON w.session_key = t.session_key WHERE w.deleted_at IS NULL LIMIT $2

-- name: windows_of_agent
SELECT w.window_no FROM sessions s JOIN windows w ON w.session_key = s.session_key
WHERE s.agent_id = $1 AND w.deleted_at IS NULL LIMIT $2
