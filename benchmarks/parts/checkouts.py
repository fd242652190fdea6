"""The tipbench of this checkout, and that of another one: both are measured in turn, so both meet the same machine."""

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
    return [THIS, *([Checkout("before", before.resolve())] if before else [])]
