"""The decision log: decisions and rewards, append-only, and the statistics derived from it."""
