-- name: standing
SELECT state, is_owner FROM senders WHERE channel = $1 AND account_id = $2 AND sender_id = $3

-- name: asking
SELECT code, expires_at FROM senders
WHERE channel = $1 AND account_id = $2 AND sender_id = $3 AND state = 'asking'

-- name: count_asking
SELECT count(*) FROM senders WHERE channel = $1 AND account_id = $2 AND state = 'asking'

-- name: forget_late
DELETE FROM senders WHERE state = 'asking' AND expires_at <= $1

-- name: ask
INSERT INTO senders (channel, account_id, sender_id, name, state, code, is_owner, asked_at, decided_at, expires_at)
VALUES ($1, $2, $3, $4, 'asking', $5, 0, $6, NULL, $7)
ON CONFLICT DO NOTHING
RETURNING code

-- name: by_code
SELECT channel, account_id, sender_id, name, state, code, is_owner, asked_at, decided_at, expires_at
FROM senders WHERE channel = $1 AND code = $2 AND state = 'asking' AND expires_at > $3

-- name: admit
INSERT INTO senders (channel, account_id, sender_id, name, state, code, is_owner, asked_at, decided_at, expires_at)
VALUES ($1, $2, $3, $4, 'admitted', NULL, $5, $6, $7, NULL)
ON CONFLICT (channel, account_id, sender_id) DO UPDATE SET state = 'admitted', code = NULL, expires_at = NULL,
  is_owner = excluded.is_owner, decided_at = excluded.decided_at, name = coalesce(excluded.name, senders.name)

-- name: list
SELECT channel, account_id, sender_id, name, state, code, is_owner, asked_at, decided_at, expires_at
FROM senders WHERE ($1 = '' OR channel = $1) AND (expires_at IS NULL OR expires_at > $2)
ORDER BY state DESC, asked_at DESC, channel, sender_id LIMIT $3

-- name: remove
DELETE FROM senders WHERE channel = $1 AND ($2 = '' OR account_id = $2) AND sender_id = $3
RETURNING account_id

-- name: owners
SELECT channel, account_id, sender_id FROM senders WHERE state = 'admitted' AND is_owner = 1
ORDER BY decided_at, channel, sender_id LIMIT $1

-- name: hear
INSERT INTO overheard (channel, account_id, peer_id, thread_id, message_id, sender_id, sender, said, heard_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
ON CONFLICT DO NOTHING
RETURNING overheard_no

-- name: oldest_kept
SELECT overheard_no FROM overheard
WHERE channel = $1 AND account_id = $2 AND peer_id = $3 AND thread_id = $4
ORDER BY overheard_no DESC LIMIT 1 OFFSET $5

-- name: forget_until
DELETE FROM overheard
WHERE channel = $1 AND account_id = $2 AND peer_id = $3 AND thread_id = $4 AND overheard_no <= $5

-- name: heard
SELECT overheard_no, sender, said, heard_at FROM overheard
WHERE channel = $1 AND account_id = $2 AND peer_id = $3 AND thread_id = $4 ORDER BY overheard_no

-- name: other_people
SELECT count(*) FROM session_conversations
JOIN conversations ON conversations.conversation_no = session_conversations.conversation_no
WHERE session_conversations.session_key = $1 AND conversations.peer_kind = 'direct'
  AND NOT (conversations.channel = $2 AND conversations.peer_id = $3)

-- name: overheard_of
SELECT overheard_no FROM overheard WHERE sender_id = $1 AND ($2 = '' OR channel = $2) AND ($3 = '' OR account_id = $3)

-- name: forget_overheard
DELETE FROM overheard WHERE overheard_no = $1 RETURNING overheard_no

-- name: forget_sender
DELETE FROM senders WHERE sender_id = $1 AND ($2 = '' OR channel = $2) AND ($3 = '' OR account_id = $3)
RETURNING sender_id
