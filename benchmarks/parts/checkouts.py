"""The tipbench of this checkout, and that of another one: both are measured in turn, so both meet the same machine."""

import subprocess
import sys
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Checkout:
    name: str  # in tables
    folder: Path

    @property
    def command(self) -> list[str]:
        """By the interpreter of its own environment, if it has one: it may not use all that is installed here."""
        own = self.folder / ".venv" / "bin" / "python"
        return [str(own) if own.exists() else sys.executable, "-m", "tipbench"]

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.folder / "src")}


THIS = Checkout("tipbench", Path(__file__).parents[2])


def add_before(parser: ArgumentParser) -> None:
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="another checkout of tipbench, measured in turn")


def checkouts(before: Path | None) -> list[Checkout]:
    """Return what is measured, with its bytecode made, as installing a package does."""
    found = [THIS, *([Checkout("before", before.resolve())] if before else [])]
    for one in found:
        subprocess.run([one.command[0], "-m", "compileall", "-q", str(one.folder / "src")], check=True)
    return found
