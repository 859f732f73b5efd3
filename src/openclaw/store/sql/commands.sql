-- name: known_by_run_id
SELECT run_id, session_key, fingerprint, consumed_by, body FROM inbox WHERE run_id = $1

-- name: known_by_external_id
SELECT run_id, session_key, fingerprint, consumed_by, body FROM inbox
WHERE channel = $1 AND account_id = $2 AND peer_id = $3 AND external_id = $4

-- name: unanswered
SELECT run_id, session_key, fingerprint, consumed_by, body FROM inbox WHERE consumed_by = '' ORDER BY admission LIMIT $1

-- name: settle_input
UPDATE inbox SET body = $1, consumed_by = $2 WHERE run_id = $3 AND consumed_by = '' RETURNING accepted_at

-- name: insert_ended_run
INSERT INTO runs (run_id, session_key, agent_id, window_no, kind, lane, state, outcome, stop_reason, error, owner, fence,
  resumes, started_at, last_progress, ended_at)
VALUES ($1, $2, $3, $4, 'command', 'command', 'ended', $5, $6, $7, '', 1, 0, $8, $9, $10)

-- name: spawned_by
SELECT * FROM sessions WHERE spawned_by = $1 ORDER BY session_no LIMIT $2

-- name: usage_totals
SELECT count(*), CAST(coalesce(sum(input), 0) AS BIGINT), CAST(coalesce(sum(output), 0) AS BIGINT), sum(cost_usd),
  CAST(coalesce(sum(CASE WHEN cost_usd IS NULL THEN 1 ELSE 0 END), 0) AS BIGINT)
FROM usage WHERE session_key = $1 AND state = 'settled'
