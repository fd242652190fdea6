"""Signatures between tipbench and a judge elsewhere: HMAC-SHA256 over a timestamp and the body.

Both sides know the secret; it never travels. What does is a key that is good for one batch, with which a judge signs
the scores that it sends back later.
"""

import hashlib
import hmac
import re

from tipbench.core.errors import InvalidInput

TIMESTAMP_HEADER = "X-Tipbench-Timestamp"
SIGNATURE_HEADER = "X-Tipbench-Signature"
_TIMESTAMP = re.compile(r"[0-9]{1,12}")


def sign(secret: str, timestamp: int | str, body: bytes) -> str:
    """The signature's header: `sha256=<hex>` over `<timestamp>.<body>`; the timestamp is in whole seconds."""
    return f"sha256={_hmac(secret, f'{timestamp}.'.encode() + body)}"


def verify_signature(
    secret: str, timestamp: int | str, body: bytes, given: str, now: float, tolerance_s: float = 300
) -> bool:
    """Whether somebody who knows the secret signed this body, and did so just now."""
    if not secret or not is_fresh(timestamp, now, tolerance_s):
        return False
    return hmac.compare_digest(sign(secret, timestamp, body).encode(), given.encode("utf-8", "replace"))


def is_fresh(timestamp: int | str, now: float, tolerance_s: float = 300) -> bool:
    return bool(_TIMESTAMP.fullmatch(str(timestamp))) and abs(now - int(timestamp)) <= tolerance_s


def batch_key(secret: str, batch_id: str) -> str:
    """A key for the scores of this batch alone; the secret can't be found from it."""
    return _hmac(secret, f"tipbench batch {batch_id}".encode("utf-8", "surrogatepass"))


def _hmac(secret: str, content: bytes) -> str:
    if not secret:
        raise InvalidInput("a judge's signatures need a secret; set TIPBENCH_JUDGE_SECRET")
    return hmac.new(secret.encode("utf-8", "surrogateescape"), content, hashlib.sha256).hexdigest()
