-- name: advance
UPDATE sessions SET version = version + 1, last_seq = last_seq + $1, message_count = message_count + $2,
  updated_at = CASE WHEN updated_at > $3 THEN updated_at ELSE $3 END,
  first_text = coalesce(first_text, $4), last_text = coalesce($5, last_text)
WHERE session_key = $6 AND (CAST($7 AS BIGINT) IS NULL OR window_no = $7)
RETURNING last_seq, window_no, id_salt

-- name: insert_entry
INSERT INTO entries (entry_no, window_no, seq, entry_id, parent_seq, type, role, provenance, audience, run_id,
  created_at, body, blob_hash)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)

-- name: keep_blob
INSERT INTO blobs (hash, refs, body) VALUES ($1, 1, $2) ON CONFLICT (hash) DO UPDATE SET refs = blobs.refs + 1

-- name: tail
SELECT seq, entry_id, parent_seq, type, role, provenance, audience, run_id, created_at,
  coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash))
FROM entries WHERE entry_no > $1 AND entry_no < $2 ORDER BY entry_no DESC LIMIT $3

-- name: tail_for_people
SELECT seq, entry_id, parent_seq, type, role, provenance, audience, run_id, created_at,
  coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash))
FROM entries WHERE entry_no > $1 AND entry_no < $2 AND audience = 'people' ORDER BY entry_no DESC LIMIT $3

-- name: from_seq
SELECT seq, entry_id, parent_seq, type, role, provenance, audience, run_id, created_at,
  coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash))
FROM entries WHERE entry_no >= $1 AND entry_no <= $2 ORDER BY entry_no LIMIT $3

-- name: bases
-- The window itself, then the windows that it goes on from, nearest first. Chains are short: see `forking`.
WITH RECURSIVE chain (depth, window_no, base_no, base_seq, id_salt) AS (
  SELECT 0, window_no, base_no, base_seq, id_salt FROM windows WHERE window_no = $1
  UNION ALL
  SELECT c.depth + 1, w.window_no, w.base_no, w.base_seq, w.id_salt
  FROM chain c JOIN windows w ON w.window_no = c.base_no WHERE c.depth < 64
)
SELECT window_no, base_no, base_seq, id_salt FROM chain ORDER BY depth

-- name: size_of_window
-- Of its last entries, so that a very long transcript is not read whole; they are more than any fork may bring.
SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM (
  SELECT coalesce(length(body), (SELECT length(b.body) FROM blobs b WHERE b.hash = blob_hash)) AS size FROM entries
  WHERE entry_no > $1 AND entry_no < $2 ORDER BY entry_no DESC LIMIT 20000
) newest

-- name: entry
SELECT seq, entry_id, parent_seq, type, role, provenance, audience, run_id, created_at,
  coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash))
FROM entries WHERE entry_no = $1

-- name: mark_read
UPDATE sessions SET read_seq = $1, version = version + 1 WHERE session_key = $2 RETURNING version

-- name: touch
UPDATE sessions SET version = version + 1,
  last_interaction_at = CASE WHEN $1 = 1 THEN $2 ELSE last_interaction_at END,
  updated_at = CASE WHEN updated_at > $2 THEN updated_at ELSE $2 END
WHERE session_no = $3
