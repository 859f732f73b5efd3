-- name: put
INSERT INTO jobs (job_id, agent_id, enabled, next_at, body, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (job_id) DO UPDATE SET agent_id = excluded.agent_id, enabled = excluded.enabled,
  next_at = excluded.next_at, body = excluded.body, updated_at = excluded.updated_at

-- name: get
SELECT body, next_at FROM jobs WHERE job_id = $1

-- name: count
SELECT count(*) FROM jobs

-- name: list
SELECT body, next_at FROM jobs ORDER BY created_at, job_id

-- name: due
SELECT body, next_at FROM jobs WHERE enabled = 1 AND next_at IS NOT NULL AND next_at <= $1
ORDER BY next_at, job_id LIMIT $2

-- name: next
SELECT min(next_at) FROM jobs WHERE enabled = 1

-- name: advance
UPDATE jobs SET next_at = $1, enabled = $2, updated_at = $3 WHERE job_id = $4 AND next_at = $5 RETURNING job_id

-- name: remove
DELETE FROM jobs WHERE job_id = $1 RETURNING job_id

-- name: open_run
SELECT run_id FROM job_runs WHERE job_id = $1 AND state = 'open'

-- name: add_run
INSERT INTO job_runs (job_id, due_at, run_id, session_key, session_id, state, status, error, missed, delivery,
  fired_at, ended_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
ON CONFLICT DO NOTHING RETURNING run_id

-- name: end_run
UPDATE job_runs SET state = 'ended', status = $1, error = $2, ended_at = $3
WHERE run_id = $4 AND state = 'open' RETURNING job_id, due_at, delivery

-- name: left_open
SELECT job_runs.run_id, inbox.state, runs.outcome, runs.error, runs.ended_at FROM job_runs
LEFT JOIN inbox ON inbox.run_id = job_runs.run_id
LEFT JOIN runs ON runs.run_id = inbox.consumed_by
WHERE job_runs.state = 'open' AND (runs.state = 'ended' OR inbox.state = 'cancelled' OR inbox.run_id IS NULL)

-- name: set_delivery
UPDATE job_runs SET delivery = $1 WHERE run_id = $2 AND delivery = $3 RETURNING run_id

-- name: runs
SELECT job_id, due_at, run_id, session_key, session_id, state, status, error, missed, delivery, fired_at, ended_at
FROM job_runs WHERE job_id = $1 ORDER BY due_at DESC LIMIT $2

-- name: trim_runs
DELETE FROM job_runs WHERE job_id = $1 AND state = 'ended' AND due_at < $2

-- name: keep_from
SELECT due_at FROM job_runs WHERE job_id = $1 ORDER BY due_at DESC LIMIT 1 OFFSET $2

-- name: busy
SELECT 1 FROM inbox WHERE session_key = $1 AND state = 'queued'
UNION ALL SELECT 1 FROM runs WHERE session_key = $1 AND state = 'active' LIMIT 1
