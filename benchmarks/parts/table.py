"""How a measurement is shown: in the terminal, and as Markdown in the file that BENCHMARKS_MARKDOWN names."""

import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

out = Console(highlight=False, width=120)


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    out.print(table)
    head = [columns, ["---", *["---:"] * (len(columns) - 1)]]
    _write_markdown("\n".join([f"\n{title}:\n", *(f"| {' | '.join(cells)} |" for cells in [*head, *rows]), ""]))


def conclude(line: str) -> None:
    """Print a line that says what comes of the measurement."""
    out.print(line)
    _write_markdown(f"\n- {line}")


def _write_markdown(text: str) -> None:
    path = os.environ.get("BENCHMARKS_MARKDOWN")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


def verdict(what: str, measured: float, wanted: float, unit: str = "×", precision: str = ".1f") -> bool:
    """One line: the ratio, and whether it reaches what was promised."""
    reached = measured >= wanted
    mark = "reached" if reached else f"fell short by {1 - measured / wanted:.0%}"
    conclude(f"{what}: {measured:{precision}}{unit} (wanted: at least {wanted:g}{unit}) — {mark}")
    return reached
