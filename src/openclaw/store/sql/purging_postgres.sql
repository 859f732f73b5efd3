-- What PostgreSQL says differently from purging.sql, under the same names with the same parameters.

-- name: unindex_words
DELETE FROM search WHERE search_no = $1 AND CAST($2 AS TEXT) IS NOT NULL

-- name: unindex_now
-- Nothing is put off here.
SELECT 1
