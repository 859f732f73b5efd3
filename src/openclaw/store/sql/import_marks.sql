-- name: read
SELECT value FROM meta WHERE name = $1

-- name: write
INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value
