"""What the admin server does, apart from HTTP: cached snapshots, run requests, the judging desk."""
