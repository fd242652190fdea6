"""The admin server's logic without HTTP: cached snapshots, run requests, the judging desk."""
