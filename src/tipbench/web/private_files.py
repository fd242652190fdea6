"""Files that nobody but the server's own user may read."""

import os
import re
import secrets
from pathlib import Path

from tipbench.errors import InvalidInput

_SECRET = re.compile(r"[0-9a-f]{64}")


def private_folder(home: Path, name: str = "server") -> Path:
    """A server's folder below the home; whatever its rights were, they are 0700 now."""
    folder = home / name
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
        make_private(path, secrets.token_hex(32))
    text = private_file(path).read_text(encoding="ascii", errors="replace").strip()
    if not _SECRET.fullmatch(text):
        raise InvalidInput(f"{path} is not a secret that tipbench made; remove it, and everybody signs in again")
    return bytes.fromhex(text)


def make_private(path: Path, text: str) -> bool:
    """A new file with a line in it, whole from its beginning; False where another process was quicker."""
    scratch = _scratch(path, text)
    try:
        os.link(scratch, path)
    except FileExistsError:
        return False  # a rename would have taken the place of the other one
    finally:
        scratch.unlink(missing_ok=True)
    return True


def replace_private(path: Path, text: str) -> None:
    """The same, in the place of what is there."""
    _scratch(path, text).replace(path)


def _scratch(path: Path, text: str) -> Path:
    scratch = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        private_file(scratch).write_text(text + "\n", encoding="ascii")
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise
    return scratch
