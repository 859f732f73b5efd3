-- name: by_key
-- The session, and who owns it by the registry of helpers, if that is the requester.
SELECT s.*, (SELECT p.parent_key FROM spawns p WHERE p.child_key = s.session_key AND p.parent_key = $1)
FROM sessions s WHERE s.session_key = $2

-- name: by_session_id
-- As above, by the id of any window of the session; the window comes last.
SELECT s.*, (SELECT p.parent_key FROM spawns p WHERE p.child_key = s.session_key AND p.parent_key = $1), w.window_no
FROM windows w JOIN sessions s ON s.session_key = w.session_key
WHERE w.session_id = $2 AND w.deleted_at IS NULL

-- name: tree
-- A session and those that it spawned or owns, the newest first.
SELECT s.*, (SELECT p.parent_key FROM spawns p WHERE p.child_key = s.session_key AND p.parent_key = $1)
FROM (
  SELECT session_no FROM sessions WHERE session_key = $1
  UNION SELECT session_no FROM sessions WHERE spawned_by = $1
  UNION SELECT session_no FROM sessions WHERE parent_session_key = $1
  UNION SELECT c.session_no FROM spawns o JOIN sessions c ON c.session_key = o.child_key WHERE o.parent_key = $1
) t JOIN sessions s ON s.session_no = t.session_no
WHERE s.archived_at IS NULL AND s.kind <> 'cron-run'
ORDER BY s.updated_at DESC, s.session_no DESC LIMIT $2 OFFSET $3

-- name: sizes
-- Where the newest messages for people are and how large, among the newest entries; bodies are not read.
SELECT seq, size FROM (
  SELECT seq, type, role, audience,
    coalesce(length(body), (SELECT length(b.body) FROM blobs b WHERE b.hash = blob_hash)) AS size
  FROM entries WHERE entry_no > $1 AND entry_no < $2 ORDER BY entry_no DESC LIMIT $3
) newest
WHERE type = 'message' AND audience = 'people'
  AND (CAST($4 AS BIGINT) = 1 OR coalesce(role, '') NOT IN ('toolResult', 'tool'))
ORDER BY seq DESC LIMIT $5 OFFSET $6

-- name: has_older
SELECT 1 FROM entries WHERE entry_no > $1 AND entry_no < $2 ORDER BY entry_no DESC LIMIT 1 OFFSET $3

-- name: bodies
SELECT seq, entry_id, parent_seq, type, role, provenance, audience, run_id, created_at,
  coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash))
FROM entries WHERE entry_no >= $1 AND entry_no <= $2 AND type = 'message' AND audience = 'people'
  AND (CAST($3 AS BIGINT) = 1 OR coalesce(role, '') NOT IN ('toolResult', 'tool'))
ORDER BY entry_no

-- name: place_of
-- Ids are looked for among the newest entries only, so that a long transcript costs no more than a short one.
SELECT seq FROM (
  SELECT seq, entry_id FROM entries WHERE entry_no > $1 AND entry_no < $2 ORDER BY entry_no DESC LIMIT $3
) newest
WHERE entry_id = $4

-- name: following
SELECT seq FROM entries WHERE entry_no > $1 AND entry_no < $2 AND type = 'message' AND audience = 'people'
  AND (CAST($3 AS BIGINT) = 1 OR coalesce(role, '') NOT IN ('toolResult', 'tool'))
ORDER BY entry_no LIMIT $4
