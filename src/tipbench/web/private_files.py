"""Files that nobody but the server's own user may read."""

import os
import re
import secrets
from pathlib import Path

from tipbench.errors import InvalidInput

_SECRET = re.compile(r"[0-9a-f]{64}")


def private_folder(home: Path) -> Path:
    """The server's folder below the home; whatever its rights were, they are 0700 now."""
    folder = home / "server"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder


def private_file(path: Path) -> Path:
    """An empty file of mode 0600 where there is none; one that is there gets that mode."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    path.chmod(0o600)
    return path


def server_secret(home: Path) -> bytes:
    """256 random bits that sign cookies, made on first use; removing the file ends all sessions."""
    path = private_folder(home) / "secret"
    if not path.exists():
        _make_secret(path)
    text = private_file(path).read_text(encoding="ascii", errors="replace").strip()
    if not _SECRET.fullmatch(text):
        raise InvalidInput(f"{path} is not a secret that tipbench made; remove it, and everybody signs in again")
    return bytes.fromhex(text)


def _make_secret(path: Path) -> None:
    scratch = path.with_name(f"secret.{secrets.token_hex(8)}")
    try:
        private_file(scratch).write_text(secrets.token_hex(32) + "\n", encoding="ascii")
        os.link(scratch, path)
    except FileExistsError:
        pass  # another process was quicker; a rename would have taken the place of its secret
    finally:
        scratch.unlink(missing_ok=True)
