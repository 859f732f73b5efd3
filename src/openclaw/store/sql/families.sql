-- name: helper_count
-- Up to a limit, and read from the indexes alone.
SELECT (SELECT count(*) FROM (SELECT 1 FROM sessions WHERE spawned_by IS NOT NULL LIMIT $1) spawned)
  + (SELECT count(*) FROM (SELECT 1 FROM sessions WHERE parent_session_key IS NOT NULL LIMIT $1) owned)

-- name: helpers
-- The newest sessions that belong to another one, and everybody above them. Each half reads its own index.
-- Last come the outcome and the length of the run that a helper was spawned for.
WITH RECURSIVE newest (session_no) AS (
  SELECT session_no FROM (
    SELECT session_no FROM sessions WHERE spawned_by IS NOT NULL AND (archived_at IS NULL OR CAST($1 AS BIGINT) = 1)
    UNION
    SELECT session_no FROM sessions
    WHERE parent_session_key IS NOT NULL AND (archived_at IS NULL OR CAST($1 AS BIGINT) = 1)
  ) helpers ORDER BY session_no DESC LIMIT $2
), family (session_no, above, depth) AS (
  SELECT s.session_no, coalesce(s.spawned_by, s.parent_session_key), 0
  FROM newest n JOIN sessions s ON s.session_no = n.session_no
  UNION
  SELECT p.session_no, coalesce(p.spawned_by, p.parent_session_key), f.depth + 1
  FROM family f JOIN sessions p ON p.session_key = f.above WHERE f.depth < $3
)
SELECT s.*, r.outcome, r.ended_at - r.started_at
FROM (SELECT DISTINCT session_no FROM family) f JOIN sessions s ON s.session_no = f.session_no
  LEFT JOIN spawns p ON p.child_key = s.session_key LEFT JOIN runs r ON r.run_id = p.child_run_id
ORDER BY s.session_no

-- name: has_more
SELECT 1 FROM (
  SELECT session_no FROM sessions WHERE spawned_by IS NOT NULL AND (archived_at IS NULL OR CAST($1 AS BIGINT) = 1)
  UNION
  SELECT session_no FROM sessions
  WHERE parent_session_key IS NOT NULL AND (archived_at IS NULL OR CAST($1 AS BIGINT) = 1)
) helpers LIMIT 1 OFFSET $2

-- name: many_helpers
-- The same for a store that is full of helpers: from the newest session downwards, without an index of them.
WITH RECURSIVE newest (session_no) AS (
  SELECT session_no FROM sessions
  WHERE coalesce(spawned_by, parent_session_key) IS NOT NULL AND (archived_at IS NULL OR CAST($1 AS BIGINT) = 1)
  ORDER BY session_no DESC LIMIT $2
), family (session_no, above, depth) AS (
  SELECT s.session_no, coalesce(s.spawned_by, s.parent_session_key), 0
  FROM newest n JOIN sessions s ON s.session_no = n.session_no
  UNION
  SELECT p.session_no, coalesce(p.spawned_by, p.parent_session_key), f.depth + 1
  FROM family f JOIN sessions p ON p.session_key = f.above WHERE f.depth < $3
)
SELECT s.*, r.outcome, r.ended_at - r.started_at
FROM (SELECT DISTINCT session_no FROM family) f JOIN sessions s ON s.session_no = f.session_no
  LEFT JOIN spawns p ON p.child_key = s.session_key LEFT JOIN runs r ON r.run_id = p.child_run_id
ORDER BY s.session_no

-- name: many_more
SELECT 1 FROM sessions
WHERE coalesce(spawned_by, parent_session_key) IS NOT NULL AND (archived_at IS NULL OR CAST($1 AS BIGINT) = 1)
ORDER BY session_no DESC LIMIT 1 OFFSET $2

-- name: above
-- A session and everybody above it, the nearest first.
WITH RECURSIVE line (session_key, above, depth) AS (
  SELECT session_key, coalesce(spawned_by, parent_session_key), 0 FROM sessions WHERE session_key = $1
  UNION
  SELECT p.session_key, coalesce(p.spawned_by, p.parent_session_key), l.depth + 1
  FROM line l JOIN sessions p ON p.session_key = l.above WHERE l.depth < $2
)
SELECT session_key FROM line ORDER BY depth

-- name: below
-- A session and everybody below it, the oldest first.
WITH RECURSIVE family (session_key, depth) AS (
  SELECT session_key, 0 FROM sessions WHERE session_key = $1
  UNION
  SELECT c.session_key, f.depth + 1
  FROM family f JOIN sessions c ON c.spawned_by = f.session_key OR c.parent_session_key = f.session_key
  WHERE f.depth < $2 AND coalesce(c.spawned_by, c.parent_session_key) = f.session_key
    AND (c.archived_at IS NULL OR CAST($3 AS BIGINT) = 1)
)
SELECT s.*, r.outcome, r.ended_at - r.started_at
FROM (SELECT DISTINCT session_key FROM family) f JOIN sessions s ON s.session_key = f.session_key
  LEFT JOIN spawns p ON p.child_key = s.session_key LEFT JOIN runs r ON r.run_id = p.child_run_id
ORDER BY s.session_no LIMIT $4
