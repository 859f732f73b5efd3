-- name: add
INSERT INTO diagnostics (diagnostic_no, at, kind, detail)
SELECT coalesce(max(diagnostic_no), 0) + 1, $1, $2, $3 FROM diagnostics

-- name: trim
DELETE FROM diagnostics WHERE diagnostic_no <= (SELECT max(diagnostic_no) FROM diagnostics) - $1

-- name: newest
SELECT at, kind, detail FROM diagnostics ORDER BY diagnostic_no DESC LIMIT $1

-- name: last_life
SELECT at, kind, detail FROM diagnostics WHERE kind IN ('start', 'stop') ORDER BY diagnostic_no DESC LIMIT 1
