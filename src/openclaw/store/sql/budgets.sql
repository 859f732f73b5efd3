-- name: session_spent
SELECT CAST(coalesce(sum(cost_usd), 0) AS DOUBLE PRECISION) FROM usage WHERE session_key = $1 AND at >= $2

-- name: day_spent
SELECT CAST(coalesce(sum(cost_usd), 0) AS DOUBLE PRECISION) FROM usage WHERE agent_id = $1 AND at >= $2 AND cost_usd > 0

-- name: tree_spent
SELECT CAST(coalesce(sum(cost_usd), 0) AS DOUBLE PRECISION) FROM usage WHERE tree_key = $1 AND cost_usd > 0

-- name: reserve
INSERT INTO usage (call_id, state, session_key, agent_id, run_id, tree_key, provider, model, at, cost_usd)
VALUES ($1, 'reserved', $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT (call_id) DO NOTHING

-- name: release
DELETE FROM usage WHERE call_id = $1 AND state = 'reserved'

-- name: settle_run
UPDATE usage SET state = 'settled' WHERE run_id = $1 AND state = 'reserved'

-- name: settle_orphans
UPDATE usage SET state = 'settled' WHERE state = 'reserved'
  AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.run_id = usage.run_id AND runs.state = 'active')

-- name: record
INSERT INTO usage (call_id, state, session_key, agent_id, run_id, provider, model, at, input, output, cache_read,
  cache_write, cost_usd, tree_key)
VALUES ($1, 'settled', $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
ON CONFLICT (call_id) DO UPDATE SET state = 'settled', at = excluded.at, input = excluded.input,
  output = excluded.output, cache_read = excluded.cache_read, cache_write = excluded.cache_write,
  cost_usd = excluded.cost_usd
WHERE usage.state = 'reserved'
RETURNING call_id

-- name: add_cost
UPDATE sessions SET version = version + 1, estimated_cost_usd = coalesce(estimated_cost_usd, 0) + $1
WHERE session_key = $2
