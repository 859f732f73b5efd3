"""One suite for every connector: what people may rely on, whatever the platform."""
