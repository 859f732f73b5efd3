-- What PostgreSQL says differently from search_sqlite.sql, under the same names with the same parameters.

-- name: add_pending
INSERT INTO search_pending (window_no, seq, words) VALUES ($1, $2, $3) RETURNING search_no

-- name: fold_words
INSERT INTO search (search_no, words)
SELECT search_no, chr(57344) || window_no || ' ' || words FROM search_pending ORDER BY search_no

-- name: find
-- $1 is one quoted phrase after the other. The index finds the texts that have all the words; where a phrase has
-- several, they must follow one another. MATERIALIZED: reading newest first and trying every text is never better.
WITH asked AS (
  SELECT string_to_array(btrim($1, '"'), '" "') AS phrases,
    string_to_array(btrim(CAST($2 AS TEXT), '"'), '" "') AS places
),
found AS MATERIALIZED (
  SELECT search.search_no FROM asked, search
  WHERE string_to_array(search.words, ' ') @> string_to_array(array_to_string(asked.phrases, ' '), ' ')
    AND (asked.places IS NULL OR string_to_array(search.words, ' ') && asked.places)
    AND search.search_no < $3
    AND NOT EXISTS (
      SELECT 1 FROM unnest(asked.phrases) phrase
      WHERE strpos(phrase, ' ') > 0 AND strpos(' ' || search.words || ' ', ' ' || phrase || ' ') = 0
    )
),
page AS (SELECT search_no FROM found ORDER BY search_no DESC LIMIT $4)
SELECT r.search_no, r.window_no, r.seq, w.session_id, s.session_key, s.agent_id, s.spawned_by,
  s.parent_session_key, o.parent_key, CASE WHEN s.archived_at IS NULL THEN 0 ELSE 1 END
FROM page JOIN search_rows r ON r.search_no = page.search_no
LEFT JOIN windows w ON w.window_no = r.window_no AND w.deleted_at IS NULL
LEFT JOIN sessions s ON s.session_key = w.session_key
LEFT JOIN spawns o ON o.child_key = s.session_key
ORDER BY page.search_no DESC
