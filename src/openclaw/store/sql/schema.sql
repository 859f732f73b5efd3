-- The one schema baseline (DB-11). Times are epoch milliseconds, `*_seq` counts inside one window.
-- Constraints here are the ones that remove whole classes of bugs; the verbs rely on them.

CREATE TABLE meta (
  name  TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

-- How many sessions there are, kept by the verbs, so that no list ever counts rows.
CREATE TABLE counters (
  agent_id TEXT NOT NULL,
  kind     TEXT NOT NULL,
  archived INTEGER NOT NULL CHECK (archived IN (0, 1)),
  sessions INTEGER NOT NULL CHECK (sessions >= 0),
  PRIMARY KEY (agent_id, kind, archived)
) WITHOUT ROWID;

-- One row per session key: what lists, filters and routing read as typed columns, the rest in `more`.
CREATE TABLE sessions (
  session_no          INTEGER PRIMARY KEY,
  session_key         TEXT NOT NULL UNIQUE,
  agent_id            TEXT NOT NULL,
  kind                TEXT NOT NULL,
  session_type        TEXT NOT NULL CHECK (session_type IN ('direct', 'group', 'thread')),
  window_no           INTEGER NOT NULL REFERENCES windows (window_no) DEFERRABLE INITIALLY DEFERRED,
  session_id          TEXT NOT NULL,
  id_salt             INTEGER NOT NULL,
  version             INTEGER NOT NULL,
  last_seq            INTEGER NOT NULL,
  message_count       INTEGER NOT NULL,
  read_seq            INTEGER NOT NULL,
  first_text          TEXT,
  last_text           TEXT,
  created_at          INTEGER NOT NULL,
  updated_at          INTEGER NOT NULL,
  session_started_at  INTEGER,
  last_interaction_at INTEGER,
  archived_at         INTEGER,
  pinned_at           INTEGER,
  chat_type           TEXT,
  channel             TEXT,
  label               TEXT,
  display_name        TEXT,
  subject             TEXT,
  spawned_by          TEXT,
  parent_session_key  TEXT,
  route_channel       TEXT,
  route_to            TEXT,
  route_account       TEXT,
  route_thread        TEXT,
  send_policy         TEXT,
  status              TEXT,
  last_run_id         TEXT,
  started_at          INTEGER,
  ended_at            INTEGER,
  runtime_ms          INTEGER,
  system_sent         INTEGER NOT NULL,
  aborted_last_run    INTEGER NOT NULL,
  model_provider      TEXT,
  model               TEXT,
  input_tokens        INTEGER,
  output_tokens       INTEGER,
  total_tokens        INTEGER,
  total_tokens_fresh  INTEGER,
  context_tokens      INTEGER,
  cache_read          INTEGER,
  cache_write         INTEGER,
  estimated_cost_usd  REAL,
  folded              TEXT, -- names with letters outside ASCII, folded, for the search of lists; mostly NULL
  more                BLOB NOT NULL
);
-- The only index that every message moves: lists over all agents merge one range per agent.
CREATE INDEX sessions_recent ON sessions (agent_id, updated_at DESC, session_no DESC);
CREATE UNIQUE INDEX sessions_label ON sessions (agent_id, label) WHERE label IS NOT NULL;
CREATE UNIQUE INDEX sessions_window ON sessions (window_no);
CREATE INDEX sessions_spawned_by ON sessions (spawned_by) WHERE spawned_by IS NOT NULL;
CREATE INDEX sessions_parent ON sessions (parent_session_key) WHERE parent_session_key IS NOT NULL;

-- One row per session id ever. A reset ends one and starts the next; a fork points at its base.
CREATE TABLE windows (
  window_no       INTEGER PRIMARY KEY,
  session_id      TEXT NOT NULL UNIQUE,
  session_key     TEXT NOT NULL,
  previous_no     INTEGER,
  base_no         INTEGER,
  base_seq        INTEGER NOT NULL DEFAULT 0,
  id_salt         INTEGER NOT NULL,
  reason          TEXT NOT NULL,
  started_at      INTEGER NOT NULL,
  ended_at        INTEGER,
  end_reason      TEXT,
  saved           BLOB,    -- the session as it was when this window ended, for taking the reset back
  deleted_at      INTEGER, -- its key was deleted: readable by id, but a new session of the key does not inherit it
  purging_at      INTEGER, -- its transcript is being removed for good, in slices
  purged_at       INTEGER  -- nothing of its transcript is left; the row stays, so that its id is never used again
);
CREATE INDEX windows_key ON windows (session_key, window_no);
CREATE INDEX windows_deleted ON windows (deleted_at, window_no) WHERE deleted_at IS NOT NULL AND purging_at IS NULL;
CREATE INDEX windows_purging ON windows (window_no) WHERE purging_at IS NOT NULL AND purged_at IS NULL;
CREATE INDEX windows_base ON windows (base_no) WHERE base_no IS NOT NULL;

-- The transcript: append-only, dense `seq`, clustered by `entry_no` (window, then sequence) so that a page of
-- history is one range read. One integer as the key: a table clustered by two columns keeps whole rows in its
-- inner pages, and an append then rewrites three of them.
CREATE TABLE entries (
  entry_no   INTEGER PRIMARY KEY,
  window_no  INTEGER NOT NULL REFERENCES windows (window_no),
  seq        INTEGER NOT NULL CHECK (seq >= 1),
  entry_id   TEXT NOT NULL,
  parent_seq INTEGER,
  type       TEXT NOT NULL,
  role       TEXT,
  provenance TEXT,
  audience   TEXT NOT NULL CHECK (audience IN ('people', 'model', 'internal')),
  run_id     TEXT,
  created_at INTEGER NOT NULL,
  body       BLOB,
  blob_hash  TEXT REFERENCES blobs (hash),
  CHECK (entry_no = window_no * 4294967296 + seq),
  CHECK ((body IS NULL) <> (blob_hash IS NULL))
);
-- Removing a body asks whether an entry still refers to it; few entries have one.
CREATE INDEX entries_blob ON entries (blob_hash) WHERE blob_hash IS NOT NULL;

-- Bodies over 64 KiB, once each, counted.
CREATE TABLE blobs (
  hash  TEXT PRIMARY KEY,
  refs  INTEGER NOT NULL CHECK (refs >= 0),
  body  BLOB NOT NULL
) WITHOUT ROWID;

-- What was read from the founding layout, one row per file: a second run changes nothing, a killed one goes on.
CREATE TABLE imports (
  agent_id    TEXT NOT NULL,
  file_name   TEXT NOT NULL,
  window_no   INTEGER,           -- NULL for the index file
  records     INTEGER NOT NULL,  -- entries that are in the store
  skipped     INTEGER NOT NULL,  -- lines that could not be read
  prefix_hash TEXT NOT NULL,     -- of the bytes up to the last of these entries
  hash        TEXT,              -- of the whole file, once it is in the store
  size        INTEGER NOT NULL,
  changed_ns  INTEGER NOT NULL,  -- when the file had last been written
  imported_at INTEGER NOT NULL,
  PRIMARY KEY (agent_id, file_name)
) WITHOUT ROWID;

-- The bytes of imported lines that would be written differently today, so that an export is exact (DB-4).
CREATE TABLE window_sources (
  window_no INTEGER PRIMARY KEY REFERENCES windows (window_no) ON DELETE CASCADE,
  header    BLOB NOT NULL,
  tail      BLOB NOT NULL,   -- what followed the last entry
  last_seq  INTEGER NOT NULL -- the last entry that came from the file
);
CREATE TABLE entry_sources (
  entry_no INTEGER PRIMARY KEY REFERENCES entries (entry_no) ON DELETE CASCADE,
  line     BLOB NOT NULL
);
-- Ids of entries to come in an imported window, where an imported entry already has the id of their number.
CREATE TABLE id_changes (
  window_no INTEGER NOT NULL REFERENCES windows (window_no) ON DELETE CASCADE,
  seq       INTEGER NOT NULL,
  entry_id  TEXT NOT NULL,
  PRIMARY KEY (window_no, seq)
) WITHOUT ROWID;

-- Where messages come from and replies go to; `peer_id` is byte-exact (DB-9).
CREATE TABLE conversations (
  conversation_no INTEGER PRIMARY KEY,
  channel         TEXT NOT NULL,
  account_id      TEXT NOT NULL,
  peer_kind       TEXT NOT NULL CHECK (peer_kind IN ('direct', 'group', 'channel')),
  peer_id         TEXT NOT NULL,
  thread_id       TEXT NOT NULL,
  label           TEXT,
  delivery_to     TEXT,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  UNIQUE (channel, account_id, peer_kind, peer_id, thread_id)
);
CREATE TABLE session_conversations (
  session_key     TEXT NOT NULL,
  conversation_no INTEGER NOT NULL REFERENCES conversations (conversation_no),
  first_at        INTEGER NOT NULL,
  last_at         INTEGER NOT NULL,
  PRIMARY KEY (session_key, conversation_no)
) WITHOUT ROWID;

-- Accepted inputs. `admission` is the one order; `run_id` is the idempotency key and the cancel handle.
CREATE TABLE inbox (
  admission   INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id      TEXT NOT NULL UNIQUE,
  session_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  source      TEXT NOT NULL,
  principal   TEXT NOT NULL,
  human       INTEGER NOT NULL,
  channel     TEXT,
  account_id  TEXT,
  peer_id     TEXT,
  external_id TEXT,
  body        BLOB NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('queued', 'consumed', 'cancelled')),
  consumed_by TEXT,
  accepted_at INTEGER NOT NULL,
  expires_at  INTEGER,
  CHECK ((state = 'consumed') = (consumed_by IS NOT NULL))
);
CREATE UNIQUE INDEX inbox_external ON inbox (channel, account_id, peer_id, external_id)
  WHERE external_id IS NOT NULL;
CREATE INDEX inbox_waiting ON inbox (session_key, admission) WHERE state = 'queued';
-- Commands that were taken and are being carried out: few, and looked for at every start.
CREATE INDEX inbox_unanswered ON inbox (admission) WHERE consumed_by = '';

-- What the next turn of a session is told first: events that wait, a bounded number of them (CLI-7).
CREATE TABLE system_events (
  event_no    INTEGER PRIMARY KEY,
  session_key TEXT NOT NULL,
  text        TEXT NOT NULL,
  missed      INTEGER NOT NULL CHECK (missed >= 0), -- older ones that made room
  created_at  INTEGER NOT NULL
);
CREATE INDEX system_events_session ON system_events (session_key, event_no);

-- One execution of the agent loop. At most one is active per session; `fence` grows with every owner.
CREATE TABLE runs (
  run_id        TEXT PRIMARY KEY,
  session_key   TEXT NOT NULL,
  agent_id      TEXT NOT NULL,
  window_no     INTEGER NOT NULL,
  kind          TEXT NOT NULL,
  lane          TEXT NOT NULL,
  state         TEXT NOT NULL CHECK (state IN ('active', 'ended')),
  outcome       TEXT CHECK (outcome IN ('ok', 'error', 'aborted', 'timeout', 'interrupted')),
  stop_reason   TEXT,
  error         TEXT,
  owner         TEXT NOT NULL,
  fence         INTEGER NOT NULL,
  resumes       INTEGER NOT NULL,
  started_at    INTEGER NOT NULL,
  last_progress INTEGER NOT NULL,
  deadline      INTEGER,
  ended_at      INTEGER,
  reply_seq     INTEGER,
  CHECK ((state = 'ended') = (outcome IS NOT NULL))
) WITHOUT ROWID;
CREATE UNIQUE INDEX runs_active ON runs (session_key) WHERE state = 'active';

-- Sub-agents, and what a yielded or waiting session waits for.
CREATE TABLE spawns (
  child_run_id  TEXT PRIMARY KEY,
  parent_key    TEXT NOT NULL,
  child_key     TEXT NOT NULL UNIQUE,
  parent_run_id TEXT NOT NULL,
  tool_call_id  TEXT NOT NULL,
  state         TEXT NOT NULL CHECK (state IN ('active', 'settled', 'archived')),
  body          BLOB NOT NULL,
  created_at    INTEGER NOT NULL,
  settled_at    INTEGER,
  UNIQUE (parent_key, child_run_id),
  UNIQUE (parent_run_id, tool_call_id)
) WITHOUT ROWID;
CREATE INDEX spawns_parent ON spawns (parent_key, state, settled_at);
CREATE INDEX spawns_settled ON spawns (settled_at) WHERE state = 'settled';
CREATE TABLE waits (
  session_key TEXT NOT NULL,
  target      TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  deadline    INTEGER,
  PRIMARY KEY (session_key, target)
) WITHOUT ROWID;
-- Files that were handed to a sub-agent: they go with its session (SPAWN-17).
CREATE TABLE attachments (
  attachment_no INTEGER PRIMARY KEY,
  child_key     TEXT NOT NULL REFERENCES sessions (session_key) ON DELETE CASCADE,
  path          TEXT NOT NULL,
  mime_type     TEXT,
  size          INTEGER NOT NULL CHECK (size >= 0),
  sha256        TEXT NOT NULL,
  body          BLOB NOT NULL,
  created_at    INTEGER NOT NULL,
  UNIQUE (child_key, path)
);

-- Places of a chat that belong to a session of their own; no thread is the empty string. A term of NULL is
-- as configured.
CREATE TABLE thread_bindings (
  channel     TEXT NOT NULL,
  account_id  TEXT NOT NULL,
  recipient   TEXT NOT NULL,
  thread_id   TEXT NOT NULL,
  session_key TEXT NOT NULL REFERENCES sessions (session_key) ON DELETE CASCADE,
  origin      TEXT NOT NULL CHECK (origin IN ('spawn', 'focus')),
  bound_at    INTEGER NOT NULL,
  used_at     INTEGER NOT NULL,
  idle_ms     INTEGER CHECK (idle_ms >= 0),
  max_age_ms  INTEGER CHECK (max_age_ms >= 0),
  PRIMARY KEY (channel, account_id, recipient, thread_id)
) WITHOUT ROWID;
CREATE INDEX thread_bindings_session ON thread_bindings (session_key);

-- Deliveries. `unknown` is never sent again blindly; an expired one is `failed` and visible.
CREATE TABLE outbox (
  delivery_no     INTEGER PRIMARY KEY,
  idempotency_key TEXT NOT NULL UNIQUE,
  session_key     TEXT NOT NULL,
  run_id          TEXT,
  channel         TEXT NOT NULL,
  target          TEXT NOT NULL,
  account_id      TEXT,
  thread_id       TEXT,
  body            BLOB NOT NULL,
  state           TEXT NOT NULL CHECK (state IN ('prepared', 'sending', 'sent', 'unknown', 'failed')),
  attempts        INTEGER NOT NULL,
  error           TEXT,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  expires_at      INTEGER NOT NULL
);
CREATE INDEX outbox_due ON outbox (channel, delivery_no) WHERE state IN ('prepared', 'sending');

-- People on platforms: who waits for a person to let them in, and who was let in.
CREATE TABLE senders (
  channel    TEXT NOT NULL,
  account_id TEXT NOT NULL,
  sender_id  TEXT NOT NULL,
  name       TEXT,
  state      TEXT NOT NULL CHECK (state IN ('asking', 'admitted')),
  code       TEXT,
  is_owner   INTEGER NOT NULL CHECK (is_owner IN (0, 1)),
  asked_at   INTEGER NOT NULL,
  decided_at INTEGER,
  expires_at INTEGER,
  PRIMARY KEY (channel, account_id, sender_id),
  CHECK ((state = 'asking') = (code IS NOT NULL)),
  CHECK ((state = 'asking') = (expires_at IS NOT NULL))
) WITHOUT ROWID;
CREATE UNIQUE INDEX senders_code ON senders (channel, code) WHERE state = 'asking';

-- What was said in a group without calling the agent: context for the next turn there, then gone (ROUTE-3).
CREATE TABLE overheard (
  overheard_no INTEGER PRIMARY KEY AUTOINCREMENT,
  channel      TEXT NOT NULL,
  account_id   TEXT NOT NULL,
  peer_id      TEXT NOT NULL,
  thread_id    TEXT NOT NULL,
  message_id   TEXT NOT NULL,
  sender_id    TEXT NOT NULL,
  sender       TEXT NOT NULL,
  said         TEXT NOT NULL,
  heard_at     INTEGER NOT NULL,
  UNIQUE (channel, account_id, peer_id, message_id)
);
CREATE INDEX overheard_place ON overheard (channel, account_id, peer_id, thread_id, overheard_no);
CREATE INDEX overheard_sender ON overheard (channel, sender_id);

-- What a connector must not forget: a sync token, the offset of an update. Small, by name.
CREATE TABLE connector_notes (
  channel    TEXT NOT NULL,
  account_id TEXT NOT NULL,
  name       TEXT NOT NULL,
  value      BLOB NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (channel, account_id, name)
) WITHOUT ROWID;

-- One row per provider call; budget reservations are rows too. Outlives its session.
CREATE TABLE usage (
  usage_no       INTEGER PRIMARY KEY,
  call_id        TEXT NOT NULL UNIQUE,
  state          TEXT NOT NULL CHECK (state IN ('reserved', 'settled')),
  session_key    TEXT NOT NULL,
  agent_id       TEXT NOT NULL,
  run_id         TEXT NOT NULL,
  tree_key       TEXT, -- the session at the root of a tree of helpers; counted only where it costs
  provider       TEXT NOT NULL,
  model          TEXT NOT NULL,
  at             INTEGER NOT NULL,
  input          INTEGER,
  output         INTEGER,
  cache_read     INTEGER,
  cache_write    INTEGER,
  cost_usd       REAL
);
CREATE INDEX usage_session ON usage (session_key, at);
CREATE INDEX usage_day ON usage (agent_id, at) WHERE cost_usd > 0;
CREATE INDEX usage_tree ON usage (tree_key) WHERE tree_key IS NOT NULL AND cost_usd > 0;
CREATE INDEX usage_reserved ON usage (run_id) WHERE state = 'reserved';

-- Full text over what people and models said. A message puts its words into `search_pending` in its own
-- commit; every so many are folded into the index together, because an index that is written at every
-- commit costs more than the message. A search reads both.
CREATE TABLE search_pending (
  search_no INTEGER PRIMARY KEY,
  window_no INTEGER NOT NULL,
  seq       INTEGER NOT NULL,
  words     TEXT NOT NULL
);
CREATE TABLE search_rows (
  search_no INTEGER PRIMARY KEY,
  window_no INTEGER NOT NULL,
  seq       INTEGER NOT NULL
);
CREATE VIRTUAL TABLE search USING fts5 (words, content = '', columnsize = 0, tokenize = 'ascii');

-- What maintenance took out of sight or away, and why. `saved` is the session row while it can still be taken back.
CREATE TABLE removals (
  removal_no  INTEGER PRIMARY KEY,
  session_key TEXT NOT NULL,
  session_id  TEXT NOT NULL,
  agent_id    TEXT NOT NULL,
  kind        TEXT NOT NULL,
  state       TEXT NOT NULL CHECK (state IN ('archived', 'deleted', 'restored', 'purged', 'erased')),
  reason      TEXT NOT NULL CHECK (reason IN ('age', 'cron', 'cap', 'disk', 'deleted', 'erase')),
  at          INTEGER NOT NULL,
  undo_until  INTEGER,
  saved       BLOB,
  CHECK ((state = 'deleted') = (saved IS NOT NULL)),
  CHECK ((state = 'deleted') = (undo_until IS NOT NULL))
);
CREATE INDEX removals_key ON removals (session_key, at);

-- Files that transcripts were written to, mostly before their rows were purged (DB-17), so that an erase finds them.
CREATE TABLE archives (
  window_no   INTEGER NOT NULL REFERENCES windows (window_no),
  session_key TEXT NOT NULL,
  path        TEXT NOT NULL,
  size        INTEGER NOT NULL CHECK (size >= 0),
  sha256      TEXT NOT NULL,
  written_at  INTEGER NOT NULL,
  PRIMARY KEY (window_no, path)
) WITHOUT ROWID;
CREATE INDEX archives_key ON archives (session_key);
CREATE INDEX archives_written ON archives (written_at, window_no);

-- Scheduled jobs; paired devices, their tokens (hashes only), and devices that wait for the owner.
CREATE TABLE jobs (
  job_id     TEXT PRIMARY KEY,
  agent_id   TEXT NOT NULL,
  enabled    INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  next_at    INTEGER,
  body       BLOB NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) WITHOUT ROWID;
-- Each time a job was due, once: what ran, and how it ended (AUTO-4).
CREATE TABLE job_runs (
  job_id      TEXT NOT NULL,
  due_at      INTEGER NOT NULL,
  run_id      TEXT NOT NULL UNIQUE,
  session_key TEXT NOT NULL,
  session_id  TEXT,
  state       TEXT NOT NULL CHECK (state IN ('open', 'ended')),
  status      TEXT CHECK (status IN ('ok', 'error', 'skipped')),
  error       TEXT,
  missed      INTEGER NOT NULL CHECK (missed >= 0), -- earlier times that passed while nobody ran
  delivery    TEXT NOT NULL CHECK (delivery IN ('none', 'announce', 'webhook', 'posting', 'posted', 'failed')),
  fired_at    INTEGER NOT NULL,
  ended_at    INTEGER,
  PRIMARY KEY (job_id, due_at),
  CHECK ((state = 'ended') = (status IS NOT NULL))
) WITHOUT ROWID;
CREATE INDEX job_runs_open ON job_runs (job_id) WHERE state = 'open';

CREATE TABLE devices (
  device_id    TEXT PRIMARY KEY,
  public_key   TEXT NOT NULL UNIQUE,
  body         BLOB NOT NULL,
  created_at   INTEGER NOT NULL,
  approved_at  INTEGER NOT NULL,
  last_seen_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE device_tokens (
  token_hash   TEXT PRIMARY KEY,
  device_id    TEXT NOT NULL REFERENCES devices (device_id),
  role         TEXT NOT NULL CHECK (role IN ('operator', 'node')),
  scopes       TEXT NOT NULL,
  created_at   INTEGER NOT NULL,
  last_used_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX device_tokens_device ON device_tokens (device_id, role);
CREATE TABLE device_requests (
  request_id   TEXT PRIMARY KEY,
  device_id    TEXT NOT NULL UNIQUE,
  body         BLOB NOT NULL,
  created_at   INTEGER NOT NULL,
  expires_at   INTEGER NOT NULL
) WITHOUT ROWID;

-- The gateway's own life; the newest few hundred.
CREATE TABLE diagnostics (
  diagnostic_no INTEGER PRIMARY KEY,
  at            INTEGER NOT NULL,
  kind          TEXT NOT NULL CHECK (kind IN ('start', 'stop', 'crash', 'recovery', 'refused', 'watchdog', 'doctor')),
  detail        TEXT NOT NULL
);
