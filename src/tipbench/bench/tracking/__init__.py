"""Tracking: MLflow is the only store of results, reached over REST or, for a SQLite file, in process."""
