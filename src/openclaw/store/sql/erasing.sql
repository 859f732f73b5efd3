-- Finding looks through whole tables: an erase is rare, and its reading is off the writer. Removing goes by key.
-- A person is $1 a principal, $2 a peer, $3 a channel and $4 an account that narrow the peer; each may be NULL.

-- name: inputs_of_person
SELECT run_id, session_key FROM inbox
WHERE principal = $1
  OR (peer_id = $2 AND (CAST($3 AS TEXT) IS NULL OR channel = $3) AND (CAST($4 AS TEXT) IS NULL OR account_id = $4))

-- name: places_of_person
SELECT conversation_no, label, delivery_to FROM conversations
WHERE peer_kind = 'direct' AND peer_id = $1 AND (CAST($2 AS TEXT) IS NULL OR channel = $2)
  AND (CAST($3 AS TEXT) IS NULL OR account_id = $3)

-- name: sessions_at_place
SELECT session_key FROM session_conversations WHERE conversation_no = $1

-- name: places_of_session
SELECT conversation_no FROM session_conversations WHERE session_key = $1

-- name: user_entries
SELECT e.entry_no, e.window_no, e.seq, e.run_id, i.human FROM windows w
JOIN entries e ON e.entry_no > w.window_no * 4294967296 AND e.entry_no < (w.window_no + 1) * 4294967296
LEFT JOIN inbox i ON i.run_id = e.run_id
WHERE w.session_key = $1 AND w.purged_at IS NULL AND e.role = 'user'

-- name: summaries
SELECT e.entry_no, e.window_no, e.seq FROM windows w
JOIN entries e ON e.entry_no > w.window_no * 4294967296 AND e.entry_no < (w.window_no + 1) * 4294967296
WHERE w.session_key = $1 AND w.purged_at IS NULL AND e.type IN ('compaction', 'branch_summary')

-- name: waiting_inputs
SELECT run_id FROM inbox WHERE session_key = $1 AND state = 'queued' AND human = 1

-- name: indexed_of_session
SELECT r.search_no, r.window_no, r.seq FROM search_rows r JOIN windows w ON w.window_no = r.window_no
WHERE w.session_key = $1

-- name: windows_of_key
SELECT window_no FROM windows WHERE session_key = $1

-- name: full_entry
SELECT entry_no, window_no, seq, entry_id, parent_seq, type, role, provenance, audience, created_at, blob_hash,
  coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash))
FROM entries WHERE entry_no = $1

-- name: put_tombstone
INSERT INTO entries (entry_no, window_no, seq, entry_id, parent_seq, type, role, provenance, audience, created_at, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)

-- name: first_said
SELECT coalesce(e.body, (SELECT b.body FROM blobs b WHERE b.hash = e.blob_hash)) FROM entries e
WHERE e.entry_no > $1 AND e.entry_no < $2 AND e.type = 'message' AND e.audience = 'people' AND e.role = 'user'
ORDER BY e.entry_no LIMIT 1

-- name: last_said
SELECT coalesce(e.body, (SELECT b.body FROM blobs b WHERE b.hash = e.blob_hash)) FROM entries e
WHERE e.entry_no > $1 AND e.entry_no < $2 AND e.type = 'message' AND e.audience = 'people'
  AND e.role IN ('user', 'assistant')
ORDER BY e.entry_no DESC LIMIT 1

-- name: last_numbers
-- What comes after these is of a new session with the same key, and stays.
SELECT (SELECT coalesce(max(admission), 0) FROM inbox), (SELECT coalesce(max(window_no), 0) FROM windows),
  (SELECT coalesce(max(delivery_no), 0) FROM outbox), (SELECT coalesce(max(usage_no), 0) FROM usage),
  (SELECT coalesce(max(removal_no), 0) FROM removals)

-- name: detach_forks
UPDATE windows SET base_no = NULL, base_seq = 0 WHERE base_no = $1

-- name: inputs_of_session
SELECT run_id FROM inbox WHERE session_key = $1 AND admission <= $2

-- name: runs_of_session
SELECT run_id FROM runs WHERE session_key = $1 AND window_no <= $2

-- name: deliveries_of_session
SELECT delivery_no FROM outbox WHERE session_key = $1 AND delivery_no <= $2

-- name: deliveries_of_run
SELECT delivery_no FROM outbox WHERE run_id = $1

-- name: deliveries_to
SELECT delivery_no FROM outbox
WHERE target = $1 AND (CAST($2 AS TEXT) IS NULL OR channel = $2) AND (CAST($3 AS TEXT) IS NULL OR account_id = $3)

-- name: usage_of_session
SELECT usage_no FROM usage WHERE session_key = $1 AND usage_no <= $2

-- name: usage_of_run
SELECT usage_no FROM usage WHERE run_id = $1

-- name: removals_of_session
SELECT removal_no FROM removals WHERE session_key = $1 AND removal_no <= $2

-- name: spawns_of_session
SELECT child_run_id FROM spawns WHERE (parent_key = $1 OR child_key = $1) AND created_at <= $2

-- name: remove_input
DELETE FROM inbox WHERE run_id = $1 RETURNING run_id

-- name: remove_run
DELETE FROM runs WHERE run_id = $1 AND state = 'ended' RETURNING run_id

-- name: remove_delivery
DELETE FROM outbox WHERE delivery_no = $1 RETURNING delivery_no

-- name: anonymise_usage
UPDATE usage SET session_key = 'erased', run_id = 'erased', tree_key = NULL, call_id = 'erased-' || usage_no
WHERE usage_no = $1 RETURNING usage_no

-- name: remove_removal
DELETE FROM removals WHERE removal_no = $1 RETURNING removal_no

-- name: remove_spawn
DELETE FROM spawns WHERE child_run_id = $1 RETURNING child_run_id

-- name: remove_waits
DELETE FROM waits WHERE session_key = $1

-- name: unlink_session
DELETE FROM session_conversations WHERE session_key = $1

-- name: unlink_place
DELETE FROM session_conversations WHERE conversation_no = $1

-- name: remove_place
DELETE FROM conversations WHERE conversation_no = $1
  AND NOT EXISTS (SELECT 1 FROM session_conversations l WHERE l.conversation_no = $1)
RETURNING conversation_no

-- name: anonymise_window
UPDATE windows SET session_key = 'erased', session_id = 'erased-' || window_no WHERE window_no = $1 RETURNING window_no

-- name: note_erasure
INSERT INTO removals (session_key, session_id, agent_id, kind, state, reason, at)
VALUES ('erased', $1, '', '', 'erased', 'erase', $2)
