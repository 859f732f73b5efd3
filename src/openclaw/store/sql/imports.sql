-- name: changed_id
SELECT entry_id FROM id_changes WHERE window_no = $1 AND seq = $2

-- name: change_id
INSERT INTO id_changes (window_no, seq, entry_id) VALUES ($1, $2, $3)

-- name: get_import
SELECT agent_id, file_name, window_no, records, skipped, prefix_hash, hash, size, changed_ns
FROM imports WHERE agent_id = $1 AND file_name = $2

-- name: imports_of
SELECT agent_id, file_name, window_no, records, skipped, prefix_hash, hash, size, changed_ns
FROM imports WHERE agent_id = $1 ORDER BY file_name

-- name: put_import
INSERT INTO imports (agent_id, file_name, window_no, records, skipped, prefix_hash, hash, size, changed_ns,
  imported_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (agent_id, file_name) DO UPDATE SET window_no = excluded.window_no, records = excluded.records,
  skipped = excluded.skipped, prefix_hash = excluded.prefix_hash, hash = excluded.hash, size = excluded.size,
  changed_ns = excluded.changed_ns, imported_at = excluded.imported_at

-- name: open_window
INSERT INTO windows (session_id, session_key, id_salt, reason, started_at)
VALUES ($1, $2, $3, 'imported', $4)
RETURNING window_no

-- name: put_source
INSERT INTO window_sources (window_no, header, tail, last_seq) VALUES ($1, $2, $3, $4)
ON CONFLICT (window_no) DO UPDATE SET header = excluded.header, tail = excluded.tail,
  last_seq = excluded.last_seq

-- name: get_source
SELECT header, tail, last_seq FROM window_sources WHERE window_no = $1

-- name: keep_line
INSERT INTO entry_sources (entry_no, line) VALUES ($1, $2)

-- name: forget_changes
DELETE FROM id_changes WHERE window_no = $1

-- name: copy_changes
INSERT INTO id_changes (window_no, seq, entry_id)
SELECT CAST($1 AS BIGINT), seq, entry_id FROM id_changes WHERE window_no = $2 AND seq > $3

-- name: ids_of_window
SELECT entry_id FROM entries WHERE entry_no > $1 AND entry_no < $2

-- name: first_said
SELECT role, coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash))
FROM entries
WHERE entry_no > $1 AND entry_no < $2 AND type = 'message' AND audience = 'people' AND role = 'user'
ORDER BY entry_no LIMIT $3

-- name: last_said
SELECT role, coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash))
FROM entries
WHERE entry_no > $1 AND entry_no < $2 AND type = 'message' AND audience = 'people'
  AND role IN ('user', 'assistant')
ORDER BY entry_no DESC LIMIT $3

-- name: export_page
-- Large bodies come one at a time, so that a page stays small.
SELECT e.seq, e.entry_id, p.entry_id, e.type, e.created_at, e.body,
  CASE WHEN e.blob_hash IS NULL THEN s.line END
FROM entries e
LEFT JOIN entries p ON p.entry_no = e.entry_no - e.seq + e.parent_seq
LEFT JOIN entry_sources s ON s.entry_no = e.entry_no
WHERE e.entry_no > $1 AND e.entry_no < $2
ORDER BY e.entry_no LIMIT $3

-- name: export_large
SELECT b.body, s.line FROM entries e
JOIN blobs b ON b.hash = e.blob_hash
LEFT JOIN entry_sources s ON s.entry_no = e.entry_no
WHERE e.entry_no = $1

-- name: last_seq
SELECT seq FROM entries WHERE entry_no > $1 AND entry_no < $2 ORDER BY entry_no DESC LIMIT 1
