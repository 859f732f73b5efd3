-- name: shared_sessions
SELECT l.session_key, c.channel, c.peer_id
FROM session_conversations AS l JOIN conversations AS c ON c.conversation_no = l.conversation_no
WHERE c.peer_kind = 'direct' AND l.session_key IN (
  SELECT m.session_key FROM session_conversations AS m
  JOIN conversations AS d ON d.conversation_no = m.conversation_no
  WHERE d.peer_kind = 'direct' GROUP BY m.session_key HAVING count(*) > 1
)
ORDER BY l.session_key, c.conversation_no LIMIT $1
