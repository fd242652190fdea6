"""What the admin server does, apart from HTTP: cached looks, run requests, the judging desk."""
