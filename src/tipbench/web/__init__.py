"""Building blocks shared by all our HTTP servers: authentication, error responses, limits, security headers, logs."""
