"""Folders and files that nobody but their own user may read: the home, and what is in it."""

import os
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from tipbench.errors import InvalidInput
from tipbench.untrusted import shown

# what stands in a home, and what writing it may leave beside it
_OURS = re.compile(
    r"cache|experiments|journal|judged|locks|mlflow-artifacts|recommender|server|weights|\.?mlflow\.db([-.].*)?"
)
_SECRET = re.compile(r"[0-9a-f]{64}")


def make_private_folder(folder: Path) -> None:
    """Make the folder, and those above it that are missing, with mode 0700; one that is there stays as it is."""
    if not folder.parent.exists():
        make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def tighten_home(home: Path) -> str:
    """Take the rights of other users away from a home that an earlier version made; returns a sentence about it.

    A home with files that are not ours is left as it is, and so is one of another user: then the sentence is a warning.
    """
    try:
        found = home.stat()
        if not found.st_mode & 0o077 or not stat.S_ISDIR(found.st_mode):
            return ""
        foreign = sorted(entry.name for entry in home.iterdir() if not _OURS.fullmatch(entry.name))
    except OSError:  # whoever uses it will say so
        return ""
    if foreign or found.st_uid != os.getuid():
        why = f"it holds {shown(foreign[0])}, which tipbench did not make" if foreign else "it belongs to another user"
        return (
            f"Other users of this machine can read {home}. It was left so, because {why}; "
            f"'chmod -R go= {home}' hides it, or set TIPBENCH_HOME to a folder of its own."
        )
    for folder, _, names in os.walk(home):
        for path in (Path(folder), *(Path(folder, name) for name in names)):
            with suppress(OSError):  # gone meanwhile, or another user's; nobody gets past the home any more
                if not path.is_symlink():
                    path.chmod(stat.S_IMODE(path.stat().st_mode) & 0o700)
    return f"Other users of this machine could read {home}; now only you can."


def is_private(folder: Path) -> bool:
    return not folder.stat().st_mode & 0o077


def private_folder(home: Path, name: str = "server") -> Path:
    """A server's folder below the home; whatever its rights were, they are 0700 now."""
    folder = home / name
    make_private_folder(folder)
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
