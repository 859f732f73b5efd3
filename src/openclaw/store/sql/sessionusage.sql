-- name: usage_by_session
SELECT session_key, agent_id, max(at), min(at), count(*), CAST(coalesce(sum(input), 0) AS BIGINT),
  CAST(coalesce(sum(output), 0) AS BIGINT), CAST(coalesce(sum(cache_read), 0) AS BIGINT),
  CAST(coalesce(sum(cache_write), 0) AS BIGINT), CAST(coalesce(sum(cost_usd), 0) AS DOUBLE PRECISION),
  CAST(count(*) - count(cost_usd) AS BIGINT)
FROM usage
WHERE state = 'settled' AND at >= $1 AND at < $2 AND (CAST($3 AS TEXT) IS NULL OR session_key = $3)
  AND (CAST($4 AS TEXT) IS NULL OR agent_id = $4)
GROUP BY session_key, agent_id ORDER BY max(at) DESC, session_key LIMIT $5

-- name: usage_by_model
SELECT agent_id, provider, model, at / 900000, count(*), CAST(coalesce(sum(input), 0) AS BIGINT),
  CAST(coalesce(sum(output), 0) AS BIGINT), CAST(coalesce(sum(cache_read), 0) AS BIGINT),
  CAST(coalesce(sum(cache_write), 0) AS BIGINT), CAST(coalesce(sum(cost_usd), 0) AS DOUBLE PRECISION),
  CAST(count(*) - count(cost_usd) AS BIGINT)
FROM usage
WHERE state = 'settled' AND at >= $1 AND at < $2 AND (CAST($3 AS TEXT) IS NULL OR session_key = $3)
  AND (CAST($4 AS TEXT) IS NULL OR agent_id = $4)
GROUP BY agent_id, provider, model, at / 900000

-- name: sessions_in_use
SELECT count(DISTINCT session_key) FROM usage
WHERE state = 'settled' AND at >= $1 AND at < $2 AND (CAST($3 AS TEXT) IS NULL OR session_key = $3)
  AND (CAST($4 AS TEXT) IS NULL OR agent_id = $4)
