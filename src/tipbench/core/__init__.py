"""What both products stand on: files, locks, processes, SQLite, foreign answers, errors. Knows nothing of either."""
