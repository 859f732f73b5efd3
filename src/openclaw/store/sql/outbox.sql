-- name: prepare
INSERT INTO outbox (idempotency_key, session_key, run_id, channel, target, account_id, thread_id, body, state,
  attempts, created_at, updated_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'prepared', 0, $9, $10, $11)
ON CONFLICT (idempotency_key) DO NOTHING

-- name: due
SELECT delivery_no, idempotency_key, session_key, run_id, channel, target, account_id, thread_id, body, state,
  attempts, created_at, expires_at
FROM outbox WHERE channel = $1 AND state = 'prepared' AND expires_at > $2 ORDER BY delivery_no LIMIT $3

-- name: start
UPDATE outbox SET state = 'sending', attempts = attempts + 1, updated_at = $1
WHERE delivery_no = $2 AND state = 'prepared' RETURNING delivery_no

-- name: settle
UPDATE outbox SET state = $1, error = $2, updated_at = $3 WHERE delivery_no = $4 AND state = 'sending'
RETURNING delivery_no

-- name: postpone
UPDATE outbox SET state = 'prepared', error = $1, updated_at = $2 WHERE delivery_no = $3 AND state = 'sending'
RETURNING delivery_no

-- name: expire
UPDATE outbox SET state = 'failed', error = 'expired before it could be sent', updated_at = $1
WHERE state = 'prepared' AND expires_at <= $1 RETURNING delivery_no

-- name: forget_sending
UPDATE outbox SET state = 'unknown', error = 'the gateway stopped while sending', updated_at = $1
WHERE state = 'sending' RETURNING delivery_no

-- name: resume_sending
UPDATE outbox SET state = 'prepared', error = NULL, updated_at = $1
WHERE state = 'unknown' AND error = 'the gateway stopped while sending' AND channel = $2
  AND COALESCE(account_id, 'default') = $3 AND expires_at > $1 RETURNING delivery_no

-- name: retry
UPDATE outbox SET state = 'prepared', error = NULL, updated_at = $1, expires_at = $2
WHERE delivery_no = $3 AND state IN ('unknown', 'failed') RETURNING delivery_no

-- name: states
SELECT state, count(*) FROM outbox GROUP BY state

-- name: list
SELECT delivery_no, idempotency_key, session_key, run_id, channel, target, account_id, thread_id, body, state,
  attempts, created_at, expires_at, updated_at, error
FROM outbox WHERE ($1 = '' OR state = $1) AND ($2 = '' OR channel = $2) AND ($3 = '' OR session_key = $3)
  AND delivery_no < $4
ORDER BY delivery_no DESC LIMIT $5

-- name: get
SELECT delivery_no, idempotency_key, session_key, run_id, channel, target, account_id, thread_id, body, state,
  attempts, created_at, expires_at, updated_at, error
FROM outbox WHERE delivery_no = $1

-- name: drop
DELETE FROM outbox WHERE delivery_no = $1 AND state IN ('prepared', 'unknown', 'failed') RETURNING delivery_no

-- name: reply_of
SELECT state, attempts, error FROM outbox WHERE idempotency_key = $1
