-- name: newest
SELECT event_no, text FROM system_events WHERE session_key = $1 ORDER BY event_no DESC LIMIT 1

-- name: insert
INSERT INTO system_events (session_key, text, missed, created_at) VALUES ($1, $2, 0, $3)

-- name: oldest
SELECT event_no, missed FROM system_events WHERE session_key = $1 ORDER BY event_no LIMIT 2

-- name: count
SELECT count(*) FROM system_events WHERE session_key = $1

-- name: remove
DELETE FROM system_events WHERE event_no = $1

-- name: add_missed
UPDATE system_events SET missed = missed + $1 WHERE event_no = $2

-- name: waiting
SELECT text, created_at, missed FROM system_events WHERE session_key = $1 ORDER BY event_no

-- name: clear
DELETE FROM system_events WHERE session_key = $1

-- name: waking
SELECT run_id FROM inbox
WHERE session_key = $1 AND state = 'queued' AND source = 'system' AND substr(run_id, 1, 5) = 'wake:' LIMIT 1

-- name: inputs_waiting
SELECT count(*) FROM inbox WHERE state = 'queued'
