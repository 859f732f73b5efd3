"""Telegram: a connector for its Bot API. Nothing outside this package knows what Telegram calls things."""
