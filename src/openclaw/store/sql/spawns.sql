-- name: insert
INSERT INTO spawns (child_run_id, parent_key, child_key, parent_run_id, tool_call_id, state, body, created_at)
VALUES ($1, $2, $3, $4, $5, 'active', $6, $7)

-- name: by_call
SELECT child_run_id, parent_key, child_key, parent_run_id, tool_call_id, state, body, created_at, settled_at
FROM spawns WHERE parent_run_id = $1 AND tool_call_id = $2

-- name: by_child
SELECT child_run_id, parent_key, child_key, parent_run_id, tool_call_id, state, body, created_at, settled_at
FROM spawns WHERE child_key = $1

-- name: of_parent
SELECT child_run_id, parent_key, child_key, parent_run_id, tool_call_id, state, body, created_at, settled_at
FROM spawns WHERE parent_key = $1 AND (state = 'active' OR settled_at >= $2)
ORDER BY created_at DESC, child_run_id DESC LIMIT $3

-- name: count_active
SELECT count(*) FROM spawns WHERE parent_key = $1 AND state = 'active'

-- name: settle
UPDATE spawns SET state = 'settled', settled_at = $1, body = $2 WHERE child_key = $3 AND state = 'active'
RETURNING child_run_id

-- name: unfinished
SELECT child_key FROM spawns WHERE state = 'active' ORDER BY created_at LIMIT $1

-- name: wait_for
INSERT INTO waits (session_key, target, created_at, deadline) VALUES ($1, $2, $3, NULL) ON CONFLICT DO NOTHING

-- name: waits_for
SELECT 1 FROM waits WHERE session_key = $1 AND target = $2

-- name: count_waits
SELECT count(*) FROM waits WHERE session_key = $1

-- name: end_wait
DELETE FROM waits WHERE session_key = $1 AND target = $2

-- name: end_waits
DELETE FROM waits WHERE session_key = $1

-- name: note
UPDATE spawns SET body = $1 WHERE child_key = $2 AND state = 'active'

-- name: usage
SELECT count(*), CAST(sum(input) AS BIGINT), CAST(sum(output) AS BIGINT), CAST(sum(cost_usd) AS DOUBLE PRECISION)
FROM usage WHERE session_key = $1 AND state = 'settled'

-- name: to_archive
SELECT child_key FROM spawns
WHERE state = 'settled' AND settled_at <= $1 AND substr(child_key, 1, length($2)) = $2
  AND NOT EXISTS (SELECT 1 FROM thread_bindings b WHERE b.session_key = child_key)
ORDER BY settled_at LIMIT $3

-- name: archived
UPDATE spawns SET state = 'archived' WHERE child_key = $1 AND state = 'settled'

-- name: mark
SAVEPOINT beginning

-- name: undo
ROLLBACK TO SAVEPOINT beginning

-- name: forget_mark
RELEASE SAVEPOINT beginning
