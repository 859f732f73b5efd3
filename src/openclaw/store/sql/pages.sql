-- name: seq_at_offset
-- The number of the message for people that so many newer ones follow.
SELECT seq FROM entries WHERE entry_no > $1 AND entry_no < $2 AND audience = 'people'
ORDER BY entry_no DESC LIMIT 1 OFFSET $3

-- name: people_after
SELECT seq, entry_id, parent_seq, type, role, provenance, audience, run_id, created_at,
  coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash))
FROM entries WHERE entry_no > $1 AND entry_no < $2 AND audience = 'people' ORDER BY entry_no LIMIT $3

-- name: place_of
-- Ids are looked for among the newest entries only, so that a long transcript costs no more than a short one.
SELECT seq FROM (
  SELECT seq, entry_id FROM entries WHERE entry_no > $1 AND entry_no < $2 ORDER BY entry_no DESC LIMIT $3
) newest
WHERE entry_id = $4

-- name: count_after
SELECT count(*) FROM entries WHERE entry_no > $1 AND entry_no < $2 AND audience = 'people'

-- name: compactions_between
SELECT seq, entry_id, created_at, coalesce(body, (SELECT b.body FROM blobs b WHERE b.hash = blob_hash))
FROM entries WHERE entry_no > $1 AND entry_no < $2 AND type = 'compaction' ORDER BY entry_no LIMIT $3

-- name: first_for_people
SELECT entry_id FROM entries WHERE entry_no > $1 AND entry_no < $2 AND audience = 'people' ORDER BY entry_no LIMIT 1

-- name: by_short_id
-- Sessions whose current or earlier window has an id that begins so; two are enough to know that it is not one.
SELECT DISTINCT s.session_key FROM windows w JOIN sessions s ON s.session_key = w.session_key
WHERE w.session_id >= $1 AND w.session_id < $2 AND w.deleted_at IS NULL LIMIT 2
