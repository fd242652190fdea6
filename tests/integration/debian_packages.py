"""Programs from Debian's packages that the tests use: from PATH, else unpacked into the user's cache, without root."""

import os
import shutil
import subprocess
from pathlib import Path

from tests.user_cache import built_once, cache_folder


class PackageUnavailable(RuntimeError):
    """The program is not there, and could not be brought; the message says what to do."""


def find_program(package: str, program: str) -> Path:
    """Return a program of a package from PATH, else the one in the cache, brought there if need be."""
    if found := shutil.which(program, path=f"{os.environ.get('PATH', '')}:/usr/sbin"):
        return Path(found)
    unpacked = built_once(cache_folder(f"test-{package}"), package, lambda folder: _bring(folder, package))
    (found_there,) = unpacked.glob(f"usr/*bin/{program}")
    if subprocess.run([found_there, "-h"], capture_output=True, check=False).returncode:
        raise PackageUnavailable(
            f"{program} from Debian's packages does not run here; 'sudo apt-get install {package}'."
        )
    return found_there


def _bring(folder: Path, package: str) -> None:
    """Unpack the package, whose signature apt-get checks; installing it would need root, and start it."""
    lists = folder.parent / f"lists-{package}"
    own = ["-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={lists}"]
    try:
        try:
            _run(["apt-get", "download", package], folder)
        except subprocess.CalledProcessError:  # the system's lists are missing, as they are in many images, or old
            (lists / "partial").mkdir(parents=True)
            _run(["apt-get", *own, "update"], folder)
            _run(["apt-get", *own, "download", package], folder)
        (archive,) = folder.glob("*.deb")
        _run(["dpkg-deb", "--extract", archive.name, "."], folder)
        archive.unlink()
    except (OSError, subprocess.CalledProcessError) as error:
        raise PackageUnavailable(f"Some tests need {package}; 'sudo apt-get install {package}' ({error}).") from error


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
