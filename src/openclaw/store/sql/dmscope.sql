-- name: candidates
-- Sessions in the lists whose key may name a peer; the exact shape is read from the key. Not pinned, not running.
SELECT session_no, version, session_key, agent_id, kind FROM sessions
WHERE session_no > $1 AND archived_at IS NULL AND pinned_at IS NULL AND (status IS NULL OR status <> 'running')
  AND ($2 = '' OR agent_id = $2) AND (session_key LIKE '%:direct:%' OR session_key LIKE '%:dm:%')
ORDER BY session_no LIMIT $3
