-- name: of_place
SELECT channel, account_id, recipient, thread_id, session_key, origin, bound_at, used_at, idle_ms, max_age_ms
FROM thread_bindings WHERE channel = $1 AND account_id = $2 AND recipient = $3 AND thread_id = $4

-- name: of_session
SELECT channel, account_id, recipient, thread_id, session_key, origin, bound_at, used_at, idle_ms, max_age_ms
FROM thread_bindings WHERE session_key = $1 ORDER BY bound_at, channel, account_id, recipient, thread_id LIMIT $2

-- name: of_family
SELECT b.channel, b.account_id, b.recipient, b.thread_id, b.session_key, b.origin, b.bound_at, b.used_at, b.idle_ms,
  b.max_age_ms
FROM thread_bindings b LEFT JOIN spawns s ON s.child_key = b.session_key
WHERE b.session_key = $1 OR s.parent_key = $1
ORDER BY b.bound_at, b.channel, b.account_id, b.recipient, b.thread_id LIMIT $2

-- name: all
SELECT channel, account_id, recipient, thread_id, session_key, origin, bound_at, used_at, idle_ms, max_age_ms
FROM thread_bindings ORDER BY channel, account_id, recipient, thread_id LIMIT $1

-- name: bind
INSERT INTO thread_bindings
  (channel, account_id, recipient, thread_id, session_key, origin, bound_at, used_at, idle_ms, max_age_ms)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (channel, account_id, recipient, thread_id) DO UPDATE SET
  session_key = excluded.session_key, origin = excluded.origin, bound_at = excluded.bound_at,
  used_at = excluded.used_at, idle_ms = excluded.idle_ms, max_age_ms = excluded.max_age_ms

-- name: use
UPDATE thread_bindings SET used_at = $1
WHERE channel = $2 AND account_id = $3 AND recipient = $4 AND thread_id = $5 AND used_at < $1

-- name: set_terms
UPDATE thread_bindings SET idle_ms = $1, max_age_ms = $2
WHERE channel = $3 AND account_id = $4 AND recipient = $5 AND thread_id = $6

-- name: unbind
DELETE FROM thread_bindings WHERE channel = $1 AND account_id = $2 AND recipient = $3 AND thread_id = $4
RETURNING session_key

-- name: unbind_unused
DELETE FROM thread_bindings
WHERE channel = $1 AND account_id = $2 AND recipient = $3 AND thread_id = $4 AND bound_at = $5 AND used_at = $6
RETURNING session_key

-- name: unbind_session
DELETE FROM thread_bindings WHERE session_key = $1

-- name: forget_recipient
DELETE FROM thread_bindings
WHERE recipient = $1 AND ($2 = '' OR channel = $2) AND ($3 = '' OR account_id = $3) RETURNING recipient
