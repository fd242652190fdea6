"""Where peers are installed: an environment each, because they ask for other versions than we and each other do."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.parts.table import out

_PEERS = Path(__file__).parents[1] / ".peers"


def interpreter_with(name: str, packages: Sequence[str], alone: Sequence[str] = ()) -> Path:
    """Installs on demand, once. `alone` are installed without what they ask for, which would not install here."""
    folder = _PEERS / name
    python, ready = folder / "bin/python", folder / ".ready"
    wanted = "\n".join([*packages, *alone])
    if not ready.exists() or ready.read_text() != wanted:
        out.print(f"Installing {', '.join([*alone, *packages])} …", style="dim")
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        _install(python, packages)
        if alone:
            _install(python, ["--no-deps", *alone])
        ready.write_text(wanted)
    return python


def _install(python: Path, words: Sequence[str]) -> None:
    """uv is fast; where only pip knows the way to the package index, pip does it."""
    uv = Path(sys.executable).with_name("uv")
    if uv.exists():
        quick = [str(uv), "pip", "install", "--quiet", "--system-certs", "--python", str(python), *words]
        if subprocess.run(quick, capture_output=True, check=False).returncode == 0:
            return
    quiet = ("--quiet", "--disable-pip-version-check")
    subprocess.run([str(python), "-m", "pip", "install", *quiet, *words], check=True)
