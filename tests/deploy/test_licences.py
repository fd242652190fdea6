"""The list of licences: everything in the lock is on it, with what its metadata say."""

import subprocess
import sys
from email.message import Message
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from deploy.licences import UNKNOWN, licence, locked, rows

ROOT = Path(__file__).parents[2]


class Package(Distribution):
    """One with these metadata."""

    def __init__(self, *fields: tuple[str, str], files: tuple[str, ...] = ()) -> None:
        self._fields = fields
        self._files = files

    def read_text(self, filename: str) -> str | None:
        if filename == "RECORD":
            return "".join(f"{name},,\n" for name in self._files)
        message = Message()
        for name, value in self._fields:
            message.add_header(name, value)
        return str(message)

    def locate_file(self, path: object) -> Path:
        return Path(__file__)  # any file that exists: from Python 3.13 on, others are not listed


MIT = ("Classifier", "License :: OSI Approved :: MIT License")
BSD = ("Classifier", "License :: OSI Approved :: BSD License")


@pytest.mark.parametrize(
    ("package", "said"),
    [
        (Package(("License-Expression", "MIT OR Apache-2.0"), ("License", "see file")), "MIT OR Apache-2.0"),
        (Package(("License", "BSD-2-Clause"), MIT), "BSD-2-Clause"),
        (Package(("License", "Permission is granted, " * 9), MIT), "MIT License"),
        (Package(("License", "Dual"), MIT, BSD), "MIT License or BSD License"),
        (Package(files=("one/mod.py", "one.dist-info/LICENSE.txt")), f"{UNKNOWN}: see one.dist-info/LICENSE.txt"),
        (Package(), UNKNOWN),
    ],
)
def test_the_most_exact_field_counts(package: Package, said: str) -> None:
    assert licence(package) == said


def test_what_another_system_needs_is_left_out() -> None:
    text = "# a comment\nhere==1.0 \\\n    --hash=sha256:aa\nelsewhere==2 ; sys_platform == 'win32' \\\n"
    assert [str(one) for one in locked(text)] == ["here==1.0"]


def test_what_is_not_installed_as_locked_is_said() -> None:
    with pytest.raises(SystemExit, match="no-such-package==1 is in the lock and not installed"):
        list(rows("no-such-package==1"))
    with pytest.raises(SystemExit, match=r"packaging==0\.1 is locked and .* is installed"):
        list(rows("packaging==0.1"))


def test_every_locked_package_is_listed() -> None:
    lock = ROOT / "requirements.lock"
    command = [sys.executable, str(ROOT / "deploy" / "licences.py"), str(lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    listed = {line.split()[0]: line.split(maxsplit=2)[2] for line in done.stdout.splitlines() if line[0] != "N"}
    assert {one.name for one in locked(lock.read_text())} < listed.keys()
    assert listed["fastapi"] == "MIT"
    assert listed["psycopg"] == "LGPL-3.0-only"
    unknown = [name for name, said in listed.items() if said.startswith(UNKNOWN)]
    assert done.stdout.splitlines()[-1] == f"Not said in the metadata of: {', '.join(unknown)}"
