"""The shared base: files, locks, processes, SQLite, HTTP, errors. Knows nothing about the bench or the recommender."""
