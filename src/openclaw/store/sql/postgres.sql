-- What the PostgreSQL driver asks on its own behalf: settings, ownership, recognition.

-- name: set_up
SELECT set_config('application_name', 'openclaw', false), set_config('client_encoding', 'UTF8', false),
  set_config('standard_conforming_strings', 'on', false), set_config('statement_timeout', $1, false),
  set_config('lock_timeout', $2, false),
  -- The server notices a host that vanished, and gives its locks to the next gateway.
  set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),
  set_config('tcp_keepalives_count', '3', false),
  -- Commits reach the disk before anybody is told (DB-15), whatever the default of the server is.
  set_config('synchronous_commit', CASE WHEN current_setting('synchronous_commit') IN ('off', 'local') THEN 'on'
    ELSE current_setting('synchronous_commit') END, false)

-- name: lock
SELECT pg_advisory_lock(hashtextextended('openclaw ' || $1 || ' ' || current_schema(), 0))

-- name: unlock
SELECT pg_advisory_unlock(hashtextextended('openclaw ' || $1 || ' ' || current_schema(), 0))

-- name: share
SELECT pg_try_advisory_lock_shared(hashtextextended('openclaw ' || $1 || ' ' || current_schema(), 0))

-- name: alive
SELECT 1

-- name: holders
SELECT DISTINCT coalesce(host(a.client_addr), 'this host') FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory' AND l.granted AND l.database = a.datid AND a.datname = current_database()
  AND a.pid <> pg_backend_pid()

-- name: server
SELECT current_setting('server_encoding'), current_schema(),
  pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'

-- name: tables
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'f') AND NOT EXISTS (
  SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e'
)

-- name: version
SELECT max(version) FROM openclaw_schema

-- name: stamp
INSERT INTO openclaw_schema (version) VALUES ($1)
