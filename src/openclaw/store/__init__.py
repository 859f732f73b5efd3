"""The durable state: one Store with every durable verb, over a tiny database driver.

This room touches rows. It knows no wire, no model and no platform. SQL lives in
`sql/*.sql`; decisions that need only values are called from `domain`.
"""
