-- name: by_run_id
SELECT run_id, session_key, fingerprint, state, consumed_by FROM inbox WHERE run_id = $1

-- name: by_external_id
SELECT run_id, session_key, fingerprint, state, consumed_by FROM inbox
WHERE channel = $1 AND account_id = $2 AND peer_id = $3 AND external_id = $4

-- name: insert_input
INSERT INTO inbox (run_id, session_key, fingerprint, source, principal, human, channel, account_id, peer_id,
  external_id, body, state, consumed_by, accepted_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
RETURNING admission

-- name: queued
SELECT admission, run_id, session_key, source, principal, human, accepted_at, expires_at, body FROM inbox
WHERE session_key = $1 AND state = 'queued' ORDER BY admission LIMIT $2

-- name: queued_before
SELECT admission, run_id, session_key, source, principal, human, accepted_at, expires_at, body FROM inbox
WHERE session_key = $1 AND state = 'queued' AND admission < $2 ORDER BY admission DESC LIMIT $3

-- name: count_queued
SELECT count(*) FROM inbox WHERE session_key = $1 AND state = 'queued'

-- name: consume
UPDATE inbox SET state = 'consumed', consumed_by = $1 WHERE admission = $2 AND session_key = $3 AND state = 'queued'
RETURNING admission, run_id, session_key, source, principal, human, accepted_at, expires_at, body

-- name: cancel_one
UPDATE inbox SET state = 'cancelled' WHERE run_id = $1 AND session_key = $2 AND state = 'queued' RETURNING run_id

-- name: cancel_all
UPDATE inbox SET state = 'cancelled' WHERE session_key = $1 AND state = 'queued' AND source <> 'announce'
RETURNING run_id

-- name: discard
UPDATE inbox SET state = 'cancelled' WHERE session_key = $1 AND state = 'queued' RETURNING run_id

-- name: sessions_waiting
SELECT session_key FROM inbox WHERE state = 'queued' GROUP BY session_key ORDER BY min(admission) LIMIT $1

-- name: waiting_run_id
SELECT run_id FROM inbox WHERE admission = $1 AND session_key = $2 AND state = 'queued'

-- name: get
SELECT admission, run_id, session_key, source, principal, human, accepted_at, expires_at, body FROM inbox
WHERE run_id = $1

-- name: drop_oldest
UPDATE inbox SET state = 'cancelled' WHERE admission IN (
  SELECT admission FROM inbox WHERE session_key = $1 AND state = 'queued' AND human = 1 ORDER BY admission LIMIT $2)
RETURNING admission, run_id, session_key, source, principal, human, accepted_at, expires_at, body
