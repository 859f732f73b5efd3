-- name: windows_with_words
-- Of the session that has the key now; those of an earlier one that was deleted are not its own.
SELECT w.window_no, w.session_id, w.session_key, w.previous_no, w.base_no, w.base_seq, w.id_salt, w.reason,
  w.started_at, w.ended_at, w.end_reason
FROM windows w
WHERE w.session_key = $1 AND w.deleted_at IS NULL AND EXISTS (
  SELECT 1 FROM entries e
  WHERE e.entry_no > w.window_no * 4294967296 AND e.entry_no < (w.window_no + 1) * 4294967296
)
ORDER BY w.window_no DESC LIMIT $2
