-- The one question that preview and enforcement ask. `reason` is NULL where nothing may or need be done.
-- $1 agent, $2 no newer than, $3 and $4 the place to go on after, $5 cut of cron runs, $6 cut of all others (both -1:
-- off), $7 whether the agent has too many sessions, $8 whether space is short, $9 the session in use.

-- name: examine
SELECT x.session_no, x.session_key, x.session_id, x.agent_id, x.kind, x.version, x.updated_at, x.archived,
  x.machine_made,
  CASE
    WHEN x.protected = 1 THEN NULL
    WHEN x.updated_at > 0 AND x.kind = 'cron-run' AND x.updated_at < x.cron_cut THEN 'cron'
    WHEN x.updated_at > 0 AND x.updated_at < x.age_cut AND (x.archived = 0 OR x.machine_made = 1) THEN 'age'
    WHEN x.too_many = 1 AND x.archived = 0 THEN 'cap'
    WHEN x.short = 1 AND x.machine_made = 1 THEN 'disk'
  END AS reason
FROM (
  SELECT s.session_no, s.session_key, s.session_id, s.agent_id, s.kind, s.version, s.updated_at,
    CASE WHEN s.archived_at IS NULL THEN 0 ELSE 1 END AS archived,
    CASE WHEN s.kind IN ('cron-run', 'hook', 'subagent', 'heartbeat') OR s.spawned_by IS NOT NULL THEN 1 ELSE 0 END
      AS machine_made,
    c.cron_cut, c.age_cut, c.too_many, c.short,
    CASE WHEN s.pinned_at IS NOT NULL OR s.status = 'running' OR s.session_key = c.in_use
      OR s.kind IN ('main', 'group', 'global', 'unknown') OR s.session_type <> 'direct'
      OR s.chat_type IN ('group', 'channel')
      OR EXISTS (SELECT 1 FROM inbox i WHERE i.session_key = s.session_key AND i.state = 'queued')
      OR EXISTS (SELECT 1 FROM runs r WHERE r.session_key = s.session_key AND r.state = 'active')
      OR EXISTS (SELECT 1 FROM spawns p WHERE p.child_key = s.session_key AND p.state = 'active')
      OR EXISTS (SELECT 1 FROM waits t WHERE t.session_key = s.session_key)
    THEN 1 ELSE 0 END AS protected
  FROM (
    SELECT * FROM sessions
    WHERE agent_id = $1 AND updated_at <= $2
      AND (updated_at, session_no) > ($3, $4)
    ORDER BY updated_at, session_no LIMIT 200
  ) s
  CROSS JOIN (
    SELECT CAST($5 AS BIGINT) AS cron_cut, CAST($6 AS BIGINT) AS age_cut, CAST($7 AS INTEGER) AS too_many,
      CAST($8 AS INTEGER) AS short, CAST($9 AS TEXT) AS in_use
  ) c
) x
ORDER BY x.updated_at, x.session_no

-- name: agents
SELECT agent_id, sum(CASE WHEN archived = 0 THEN sessions ELSE 0 END) FROM counters GROUP BY agent_id ORDER BY agent_id

-- name: archive
UPDATE sessions SET archived_at = $1, version = version + 1 WHERE session_no = $2 AND version = $3

-- name: count
INSERT INTO counters (agent_id, kind, archived, sessions) VALUES ($1, $2, $3, $4)
ON CONFLICT (agent_id, kind, archived) DO UPDATE SET sessions = counters.sessions + excluded.sessions

-- name: uncount
UPDATE counters SET sessions = sessions - $1 WHERE agent_id = $2 AND kind = $3 AND archived = $4

-- name: record
INSERT INTO removals (session_key, session_id, agent_id, kind, state, reason, at, undo_until, saved)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)

-- name: deleted_windows
-- What maintenance deleted can be taken back until its own time is up; what a person deleted is kept until $1.
-- A window that others are based on stays as long as one of them can still be read.
SELECT w.window_no, w.session_key, w.session_id, w.deleted_at, w.ended_at, w.end_reason, r.removal_no,
  CASE WHEN EXISTS (SELECT 1 FROM entries e
      WHERE e.entry_no > w.window_no * 4294967296 AND e.entry_no < (w.window_no + 1) * 4294967296)
    OR EXISTS (SELECT 1 FROM window_sources s WHERE s.window_no = w.window_no)
  THEN 1 ELSE 0 END AS holds_words,
  CASE
    WHEN EXISTS (SELECT 1 FROM windows f WHERE f.base_no = w.window_no AND f.purging_at IS NULL) THEN 0
    WHEN (r.removal_no IS NULL OR r.reason = 'deleted') AND w.deleted_at <= $1 THEN 1
    WHEN r.reason <> 'deleted' AND (r.state = 'purged' OR r.undo_until <= $2) THEN 1
    ELSE 0
  END AS due
FROM windows w
LEFT JOIN removals r ON r.session_key = w.session_key AND r.at = w.deleted_at
  AND (r.state = 'deleted' OR (r.state = 'purged' AND r.reason <> 'deleted'))
WHERE w.deleted_at IS NOT NULL AND w.purging_at IS NULL
  AND (w.deleted_at, w.window_no) > ($3, $4)
ORDER BY w.deleted_at, w.window_no LIMIT 200

-- name: settle
UPDATE removals SET state = $1, saved = NULL, undo_until = NULL WHERE removal_no = $2 AND state = 'deleted'

-- name: undoable
SELECT removal_no, at, saved FROM removals WHERE session_key = $1 AND state = 'deleted'
ORDER BY at DESC LIMIT 1

-- name: remember_windows
UPDATE windows SET deleted_at = NULL WHERE session_key = $1 AND +deleted_at = $2 AND purging_at IS NULL

-- name: removals_of
SELECT removal_no, session_key, session_id, agent_id, kind, state, reason, at, undo_until FROM removals
WHERE session_key = $1 ORDER BY removal_no

-- name: used_bytes
SELECT ((SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM pragma_freelist_count))
  * (SELECT page_size FROM pragma_page_size)
