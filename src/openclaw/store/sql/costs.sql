-- name: bounds
SELECT min(usage_no), max(usage_no) FROM usage

-- name: at_or_after
SELECT at FROM usage WHERE usage_no >= $1 ORDER BY usage_no LIMIT 1

-- name: slices
-- Quarters of an hour: every time zone's midnight is at the edge of one.
SELECT at / 900000, CAST(coalesce(sum(input), 0) AS BIGINT), CAST(coalesce(sum(output), 0) AS BIGINT),
  CAST(coalesce(sum(cache_read), 0) AS BIGINT), CAST(coalesce(sum(cache_write), 0) AS BIGINT),
  CAST(coalesce(sum(cost_usd), 0) AS DOUBLE PRECISION),
  CAST(coalesce(sum(CASE WHEN cost_usd IS NULL THEN 1 ELSE 0 END), 0) AS BIGINT), count(*)
FROM usage WHERE usage_no >= $1 AND at >= $2 AND at < $3 GROUP BY at / 900000 ORDER BY 1
