"""What tokens and keys have in common: how one is made, how it is kept, and what a given one has to be like."""

import hashlib
import re
import secrets
from pathlib import Path

from tipbench.core.errors import InvalidInput
from tipbench.core.files import atomic_create, private_file, private_folder
from tipbench.core.paths import server_folder

_LEAST_LENGTH = 20
_SECRET = re.compile(r"[0-9a-f]{64}")


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


def server_secret(home: Path) -> bytes:
    """256 random bits that sign cookies, created on first use; removing the file ends all sessions."""
    path = private_folder(server_folder(home)) / "secret"
    if not path.exists():
        atomic_create(path, f"{secrets.token_hex(32)}\n")
    text = private_file(path).read_text(encoding="ascii", errors="replace").strip()
    if not _SECRET.fullmatch(text):
        raise InvalidInput(f"{path} is not a secret that tipbench made; remove it, and everybody signs in again")
    return bytes.fromhex(text)
