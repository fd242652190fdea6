"""Files that are written in one step: whoever reads one sees all of it, or the one before."""

import os
import secrets
from pathlib import Path

from tipbench.bandit.folders import sync_folder


def write_whole(path: Path, content: bytes) -> None:
    """It is on the disk when this returns, and after a power cut it is whole or not there."""
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with scratch.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
        sync_folder(path.parent)
    except OSError as error:  # a full disk does not say which file had no room on it
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        scratch.unlink(missing_ok=True)
