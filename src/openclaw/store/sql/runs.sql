-- name: get
SELECT run_id, session_key, agent_id, window_no, kind, lane, state, outcome, stop_reason, error, owner, fence, resumes,
  started_at, last_progress, deadline, ended_at, reply_seq
FROM runs WHERE run_id = $1

-- name: active_of
SELECT run_id, session_key, agent_id, window_no, kind, lane, state, outcome, stop_reason, error, owner, fence, resumes,
  started_at, last_progress, deadline, ended_at, reply_seq
FROM runs WHERE session_key = $1 AND state = 'active'

-- name: active
SELECT run_id, session_key, agent_id, window_no, kind, lane, state, outcome, stop_reason, error, owner, fence, resumes,
  started_at, last_progress, deadline, ended_at, reply_seq
FROM runs WHERE state = 'active' ORDER BY started_at LIMIT $1

-- name: insert_run
INSERT INTO runs (run_id, session_key, agent_id, window_no, kind, lane, state, owner, fence, resumes, started_at,
  last_progress, deadline)
VALUES ($1, $2, $3, $4, $5, $6, 'active', $7, 1, 0, $8, $9, $10)

-- name: begin_session
UPDATE sessions SET version = version + 1, status = 'running', started_at = $1, ended_at = NULL,
  last_run_id = $2, last_interaction_at = CASE WHEN $3 = 1 THEN $1 ELSE last_interaction_at END
WHERE session_no = $4

-- name: held
SELECT run_id FROM runs WHERE run_id = $1 AND state = 'active' AND fence = $2

-- name: progress
UPDATE runs SET last_progress = $1, resumes = 0 WHERE run_id = $2 AND state = 'active' AND fence = $3 RETURNING run_id

-- name: take_over
UPDATE runs SET owner = $1, fence = fence + 1, resumes = resumes + 1, last_progress = $2
WHERE run_id = $3 AND state = 'active'
RETURNING run_id, session_key, agent_id, window_no, kind, lane, state, outcome, stop_reason, error, owner, fence, resumes,
  started_at, last_progress, deadline, ended_at, reply_seq

-- name: end_run
UPDATE runs SET state = 'ended', outcome = $1, stop_reason = $2, error = $3, ended_at = $4, last_progress = $4,
  reply_seq = $5
WHERE run_id = $6 AND state = 'active' AND fence = $7
RETURNING run_id, session_key, agent_id, window_no, kind, lane, state, outcome, stop_reason, error, owner, fence, resumes,
  started_at, last_progress, deadline, ended_at, reply_seq

-- name: abandon
UPDATE runs SET state = 'ended', outcome = 'aborted', stop_reason = 'deleted', ended_at = $1, last_progress = $1
WHERE session_key = $2 AND state = 'active'

-- name: end_session
UPDATE sessions SET version = version + 1, status = $1, ended_at = $2, runtime_ms = $3, aborted_last_run = $4,
  system_sent = 1, model_provider = coalesce($5, model_provider), model = coalesce($6, model),
  input_tokens = coalesce($7, input_tokens), output_tokens = coalesce($8, output_tokens),
  total_tokens = coalesce($9, total_tokens), total_tokens_fresh = coalesce($10, total_tokens_fresh),
  context_tokens = coalesce($11, context_tokens), cache_read = coalesce($12, cache_read),
  cache_write = coalesce($13, cache_write),
  estimated_cost_usd = CASE WHEN CAST($14 AS DOUBLE PRECISION) IS NULL THEN estimated_cost_usd
    ELSE coalesce(estimated_cost_usd, 0) + $14 END
WHERE session_key = $15

-- name: usage_totals
SELECT count(*), CAST(coalesce(sum(input), 0) AS BIGINT), CAST(coalesce(sum(output), 0) AS BIGINT), sum(cost_usd)
FROM usage WHERE session_key = $1
