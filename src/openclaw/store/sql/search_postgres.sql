-- What PostgreSQL says differently from search_sqlite.sql, under the same names with the same parameters.

-- name: add_pending
INSERT INTO search_pending (window_no, seq, words) VALUES ($1, $2, $3) RETURNING search_no

-- name: fold_words
INSERT INTO search (search_no, words) SELECT search_no, words FROM search_pending ORDER BY search_no

-- name: find
-- $1 is one quoted phrase after the other. The index finds the texts that have all the words; where a phrase has
-- several, they must follow one another. MATERIALIZED: reading newest first and trying every text is never better.
WITH asked AS (SELECT string_to_array(btrim($1, '"'), '" "') AS phrases),
found AS MATERIALIZED (
  SELECT search.search_no FROM asked, search
  WHERE string_to_array(search.words, ' ') @> string_to_array(array_to_string(asked.phrases, ' '), ' ')
    AND NOT EXISTS (
      SELECT 1 FROM unnest(asked.phrases) phrase
      WHERE strpos(phrase, ' ') > 0 AND strpos(' ' || search.words || ' ', ' ' || phrase || ' ') = 0
    )
)
SELECT s.session_key, w.session_id, e.seq, e.entry_id, e.role, e.created_at,
  coalesce(e.body, (SELECT b.body FROM blobs b WHERE b.hash = e.blob_hash))
FROM found JOIN search_rows r ON r.search_no = found.search_no
JOIN windows w ON w.window_no = r.window_no AND w.deleted_at IS NULL
JOIN sessions s ON s.session_key = w.session_key
JOIN entries e ON e.entry_no = r.window_no * 4294967296 + r.seq
WHERE (CAST($2 AS TEXT) IS NULL OR s.agent_id = $2) AND (CAST($3 AS TEXT) IS NULL OR s.session_key = $3)
ORDER BY found.search_no DESC LIMIT $4
