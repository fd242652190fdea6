"""What tokens and keys have in common: how one is made, how it is kept, and what a given one has to be like."""

import hashlib
import re
import secrets

from tipbench.errors import InvalidInput

_LEAST_LENGTH = 20


def new_token() -> str:
    """256 random bits."""
    return secrets.token_urlsafe(32)


def new_salt() -> bytes:
    return secrets.token_bytes(16)


def token_digest(salt: bytes, token: str) -> bytes:
    """All that is stored of a token."""
    return hashlib.sha256(salt + token.encode("utf-8", "surrogatepass")).digest()


def check_given(setting: str, token: str) -> None:
    """Refuses a token from a setting that is weak, or that could not travel."""
    if len(token) < _LEAST_LENGTH:
        raise InvalidInput(
            f"{setting} has {len(token)} characters; give it at least {_LEAST_LENGTH} that nobody can guess"
        )
    if not re.fullmatch(r"[!-~]+", token):
        raise InvalidInput(f"{setting} has characters that no header can carry; take letters and digits")
