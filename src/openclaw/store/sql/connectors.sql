-- name: recall
SELECT value FROM connector_notes WHERE channel = $1 AND account_id = $2 AND name = $3

-- name: note
INSERT INTO connector_notes (channel, account_id, name, value, updated_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (channel, account_id, name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
