-- name: find
SELECT device_id, public_key, body, created_at, approved_at, last_seen_at FROM devices WHERE device_id = $1

-- name: all
SELECT device_id, public_key, body, created_at, approved_at, last_seen_at FROM devices
ORDER BY approved_at DESC, device_id

-- name: count
SELECT count(*) FROM devices

-- name: by_age
SELECT device_id, body FROM devices ORDER BY last_seen_at, device_id

-- name: put
INSERT INTO devices (device_id, public_key, body, created_at, approved_at, last_seen_at)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (device_id) DO UPDATE SET body = excluded.body, approved_at = excluded.approved_at,
  last_seen_at = excluded.last_seen_at

-- name: remove
DELETE FROM devices WHERE device_id = $1 RETURNING device_id

-- name: tokens
SELECT token_hash, device_id, role, scopes, created_at, last_used_at FROM device_tokens
WHERE device_id = $1 ORDER BY last_used_at DESC, created_at DESC, token_hash

-- name: all_tokens
SELECT token_hash, device_id, role, scopes, created_at, last_used_at FROM device_tokens
ORDER BY last_used_at DESC, created_at DESC, token_hash

-- name: token
SELECT token_hash FROM device_tokens WHERE token_hash = $1

-- name: put_token
INSERT INTO device_tokens (token_hash, device_id, role, scopes, created_at, last_used_at)
VALUES ($1, $2, $3, $4, $5, $6)

-- name: use_token
UPDATE device_tokens SET last_used_at = $1 WHERE token_hash = $2

-- name: drop_token
DELETE FROM device_tokens WHERE token_hash = $1

-- name: drop_role
DELETE FROM device_tokens WHERE device_id = $1 AND role = $2 RETURNING token_hash

-- name: drop_tokens
DELETE FROM device_tokens WHERE device_id = $1

-- name: forget_expired
DELETE FROM device_requests WHERE expires_at <= $1

-- name: forget_request_of
DELETE FROM device_requests WHERE device_id = $1

-- name: forget_request
DELETE FROM device_requests WHERE request_id = $1

-- name: pending_count
SELECT count(*) FROM device_requests

-- name: requests
SELECT request_id, device_id, body, created_at, expires_at FROM device_requests
WHERE expires_at > $1 ORDER BY created_at DESC, request_id

-- name: request
SELECT request_id, device_id, body, created_at, expires_at FROM device_requests
WHERE request_id = $1 AND expires_at > $2

-- name: request_of
SELECT request_id, device_id, body, created_at, expires_at FROM device_requests
WHERE device_id = $1 AND expires_at > $2

-- name: put_request
INSERT INTO device_requests (request_id, device_id, body, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)
