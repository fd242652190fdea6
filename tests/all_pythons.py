"""Runs the tests on each Python that tipbench supports and that is on PATH, against the wheel: `make test-all-pythons`.

    python -m tests.all_pythons [arguments for pytest]

The wheel is built from the source distribution and installed into environments outside the tree, beside everything that
requirements-dev.lock pins, by hash.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.user_cache import cache_folder

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.lock"
SUPPORTED = ("3.11", "3.12", "3.13")


class Found(NamedTuple):
    """What was found on PATH for a version."""

    version: str
    program: Path | None
    problem: str = ""


def find(version: str) -> Found:
    """Look for a version on PATH. What pyenv puts there may be a program that does not start."""
    program = shutil.which(f"python{version}")
    if program is None:
        return Found(version, None, f"there is no python{version} on PATH")
    code = "import sys; print(*sys.version_info[:2], sep='.')"
    told = subprocess.run([program, "-c", code], capture_output=True, text=True, check=False)
    if told.returncode or told.stdout.strip() != version:
        return Found(version, None, f"{program} is no Python {version}: {(told.stderr or told.stdout).strip()[:200]!r}")
    return Found(version, Path(program))


def main() -> int:
    """Test on each Python, and say in the end what came of it, or why it was not run."""
    results: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        for found in map(find, SUPPORTED):
            done = _tested(found, wheel, sys.argv[1:]) if found.program else f"NOT RUN: {found.problem}"
            results[f"Python {found.version}"] = done
    print(*(f"{name}: {done}" for name, done in results.items()), sep="\n")
    ran = [done for done in results.values() if not done.startswith("NOT RUN")]
    return 0 if {*ran} == {"passed"} else 1


def _tested(found: Found, wheel: Path, arguments: list[str]) -> str:
    python = _environment(found)
    _install(python, "--force-reinstall", "--no-deps", str(wheel))
    subprocess.run([python, "-m", "pip", "check"], check=True)
    code = "import tipbench; print(tipbench.__file__)"
    where = subprocess.run([python, "-P", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    assert Path(where).is_relative_to(python.parents[1]), f"{where} is not of the wheel"
    print(f"Python {found.version}: {python}", flush=True)
    status = subprocess.run([python, "-m", "pytest", *arguments], cwd=ROOT, check=False).returncode
    return "passed" if status == 0 else f"FAILED: pytest ended with {status}"


def _environment(found: Found) -> Path:
    """Return the Python of an environment with what is locked; it is made anew when the lock has changed."""
    folder = cache_folder("pythons") / found.version
    python, stamp = folder / "bin" / "python", folder / "installed"
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        subprocess.run([str(found.program), "-m", "venv", "--clear", folder], check=True)
        _install(python, "--require-hashes", "--requirement", str(LOCK))
        stamp.write_text(digest)
    return python


def _install(python: Path, *what: str) -> None:
    """By uv, which is quick; where only pip knows the way to the package index, by pip."""
    uv: list[str | Path] = [
        Path(sys.executable).with_name("uv"),
        "pip",
        "install",
        "--quiet",
        "--system-certs",
        "--compile-bytecode",
    ]
    if subprocess.run([*uv, "--python", python, *what], check=False).returncode:
        pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *what], check=True)


if __name__ == "__main__":
    sys.exit(main())
