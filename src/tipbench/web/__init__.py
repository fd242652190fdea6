"""What every server of ours shares: authentication, the error shape, security headers."""
