-- Archive files of transcripts: one row per file, so that it is found when it is old, too much, or erased.

-- name: note_archive
INSERT INTO archives (window_no, session_key, path, size, sha256, written_at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (window_no, path) DO UPDATE SET size = excluded.size, sha256 = excluded.sha256,
  written_at = excluded.written_at

-- name: oldest
SELECT window_no, session_key, path, size, sha256, written_at FROM archives
WHERE written_at <= $1 ORDER BY written_at, window_no LIMIT 100

-- name: of_session
SELECT window_no, session_key, path, size, sha256, written_at FROM archives WHERE session_key = $1
ORDER BY window_no, written_at

-- name: forget
DELETE FROM archives WHERE window_no = $1 AND path = $2 RETURNING window_no

-- name: total_size
SELECT coalesce(sum(size), 0) FROM archives
