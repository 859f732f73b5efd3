-- name: get_by_key
SELECT * FROM sessions WHERE session_key = $1

-- name: get_by_session_id
SELECT s.* FROM windows w JOIN sessions s ON s.session_key = w.session_key
WHERE w.session_id = $1 AND w.deleted_at IS NULL

-- name: get_by_label
SELECT * FROM sessions WHERE label = $1 AND (CAST($2 AS TEXT) IS NULL OR agent_id = $2)
ORDER BY updated_at DESC LIMIT 2

-- name: insert_session
INSERT INTO sessions VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17,
  $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38,
  $39, $40, $41, $42, $43, $44, $45, $46, $47, $48, $49, $50, $51)
RETURNING session_no

-- name: replace_session
UPDATE sessions SET session_key = $1, agent_id = $2, kind = $3, session_type = $4, window_no = $5,
  session_id = $6, id_salt = $7, version = $8, last_seq = $9, message_count = $10, read_seq = $11, first_text
  = $12, last_text = $13, created_at = $14, updated_at = $15, session_started_at = $16, last_interaction_at =
  $17, archived_at = $18, pinned_at = $19, chat_type = $20, channel = $21, label = $22, display_name = $23,
  subject = $24, spawned_by = $25, parent_session_key = $26, route_channel = $27, route_to = $28,
  route_account = $29, route_thread = $30, send_policy = $31, status = $32, last_run_id = $33, started_at =
  $34, ended_at = $35, runtime_ms = $36, system_sent = $37, aborted_last_run = $38, model_provider = $39,
  model = $40, input_tokens = $41, output_tokens = $42, total_tokens = $43, total_tokens_fresh = $44,
  context_tokens = $45, cache_read = $46, cache_write = $47, estimated_cost_usd = $48, folded = $49,
  more = $50
WHERE session_no = $51 AND version = $52
RETURNING version

-- name: delete_session
DELETE FROM sessions WHERE session_no = $1 AND version = $2 RETURNING session_no

-- name: count
INSERT INTO counters (agent_id, kind, archived, sessions) VALUES ($1, $2, $3, 1)
ON CONFLICT (agent_id, kind, archived) DO UPDATE SET sessions = counters.sessions + 1

-- name: uncount
UPDATE counters SET sessions = sessions - 1 WHERE agent_id = $1 AND kind = $2 AND archived = $3

-- name: total
SELECT coalesce(sum(sessions), 0) FROM counters
WHERE (CAST($1 AS TEXT) IS NULL OR agent_id = $1) AND (CAST($2 AS BIGINT) IS NULL OR archived = $2)
  AND kind NOT IN ('cron-run', $3, $4, $5, $6, $7, $8)

-- name: insert_window
INSERT INTO windows (session_id, session_key, previous_no, base_no, base_seq, id_salt, reason, started_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
RETURNING window_no

-- name: end_window
UPDATE windows SET ended_at = $1, end_reason = $2 WHERE window_no = $3

-- name: leave_window
UPDATE windows SET ended_at = $1, end_reason = $2, saved = $3 WHERE window_no = $4

-- name: forget_saved
UPDATE windows SET saved = NULL WHERE session_key = $1 AND saved IS NOT NULL

-- name: base_window
UPDATE windows SET base_no = $1, base_seq = $2, id_salt = $3 WHERE window_no = $4

-- name: saved_in_window
SELECT saved FROM windows WHERE window_no = $1

-- name: forget_windows
UPDATE windows SET deleted_at = $1 WHERE session_key = $2 AND deleted_at IS NULL

-- name: reopen_window
UPDATE windows SET ended_at = NULL, end_reason = NULL, saved = NULL WHERE window_no = $1

-- name: get_window
SELECT window_no, session_id, session_key, previous_no, base_no, base_seq, id_salt, reason, started_at, ended_at,
  end_reason
FROM windows WHERE session_id = $1

-- name: get_window_by_no
SELECT window_no, session_id, session_key, previous_no, base_no, base_seq, id_salt, reason, started_at, ended_at,
  end_reason
FROM windows WHERE window_no = $1

-- name: windows_of_key
SELECT window_no, session_id, session_key, previous_no, base_no, base_seq, id_salt, reason, started_at, ended_at,
  end_reason
FROM windows WHERE session_key = $1 ORDER BY window_no DESC LIMIT $2

-- name: agents
SELECT DISTINCT agent_id FROM counters

-- name: list_agent
SELECT * FROM sessions
WHERE agent_id = $1
  AND (CAST($2 AS BIGINT) IS NULL OR (CASE WHEN archived_at IS NULL THEN 0 ELSE 1 END) = $2)
  AND (CAST($3 AS BIGINT) IS NULL OR updated_at >= $3)
  AND (CAST($4 AS TEXT) IS NULL OR label = $4)
  AND (CAST($5 AS TEXT) IS NULL OR spawned_by = $5)
  AND (CAST($6 AS TEXT) IS NULL OR lower(session_key) LIKE $6 ESCAPE '\' OR lower(session_id) LIKE $6 ESCAPE '\'
    OR lower(label) LIKE $6 ESCAPE '\' OR lower(display_name) LIKE $6 ESCAPE '\'
    OR lower(subject) LIKE $6 ESCAPE '\' OR folded LIKE $6 ESCAPE '\')
  AND kind NOT IN ('cron-run', $7, $8, $9, $10, $11, $12)
ORDER BY updated_at DESC, session_no DESC LIMIT $13 OFFSET $14

-- name: count_matching
SELECT count(*) FROM sessions
WHERE (CAST($1 AS TEXT) IS NULL OR agent_id = $1)
  AND (CAST($2 AS BIGINT) IS NULL OR (CASE WHEN archived_at IS NULL THEN 0 ELSE 1 END) = $2)
  AND (CAST($3 AS BIGINT) IS NULL OR updated_at >= $3)
  AND (CAST($4 AS TEXT) IS NULL OR label = $4)
  AND (CAST($5 AS TEXT) IS NULL OR spawned_by = $5)
  AND (CAST($6 AS TEXT) IS NULL OR lower(session_key) LIKE $6 ESCAPE '\' OR lower(session_id) LIKE $6 ESCAPE '\'
    OR lower(label) LIKE $6 ESCAPE '\' OR lower(display_name) LIKE $6 ESCAPE '\'
    OR lower(subject) LIKE $6 ESCAPE '\' OR folded LIKE $6 ESCAPE '\')
  AND kind NOT IN ('cron-run', $7, $8, $9, $10, $11, $12)

-- name: children
SELECT session_key FROM sessions WHERE spawned_by = $1 OR parent_session_key = $1
ORDER BY session_no DESC LIMIT $2

-- name: link_conversation
INSERT INTO conversations (channel, account_id, peer_kind, peer_id, thread_id, label, delivery_to, created_at,
  updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (channel, account_id, peer_kind, peer_id, thread_id) DO UPDATE SET
  label = coalesce(excluded.label, conversations.label),
  delivery_to = coalesce(excluded.delivery_to, conversations.delivery_to),
  updated_at = excluded.updated_at
RETURNING conversation_no

-- name: link_session
INSERT INTO session_conversations (session_key, conversation_no, first_at, last_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (session_key, conversation_no) DO UPDATE SET last_at = excluded.last_at

-- name: conversations_of
SELECT c.channel, c.account_id, c.peer_kind, c.peer_id, c.thread_id, c.label, c.delivery_to
FROM session_conversations l JOIN conversations c ON c.conversation_no = l.conversation_no
WHERE l.session_key = $1 ORDER BY l.last_at DESC LIMIT $2

-- name: window_totals
SELECT coalesce(max(seq), 0), count(*) FILTER (WHERE type = 'message' AND audience = 'people')
FROM entries WHERE entry_no > $1 AND entry_no < $2
