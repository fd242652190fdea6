"""HTTP to servers that others run."""

import ssl
from functools import cache


@cache
def tls_context() -> ssl.SSLContext:
    """The certificate authorities that are trusted, read once for all clients of this process: it takes 30 ms."""
    import httpx  # not needed to print help

    return httpx.create_ssl_context()
