"""The connector for Matrix: rooms, direct chats and threads of one account on one homeserver."""
