-- name: insert
INSERT INTO attachments (child_key, path, mime_type, size, sha256, body, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)

-- name: of_child
SELECT path, mime_type, sha256, body FROM attachments WHERE child_key = $1 ORDER BY path

-- name: children
SELECT DISTINCT child_key FROM attachments ORDER BY child_key LIMIT $1

-- name: drop
DELETE FROM attachments WHERE child_key = $1
