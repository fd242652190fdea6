"""How a measurement is shown."""

from collections.abc import Sequence

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


def verdict(what: str, measured: float, wanted: float, unit: str = "×", precision: str = ".1f") -> bool:
    """One line: the ratio, and whether it reaches what was promised."""
    reached = measured >= wanted
    mark = "reached" if reached else f"fell short by {1 - measured / wanted:.0%}"
    out.print(f"{what}: {measured:{precision}}{unit} (wanted: at least {wanted:g}{unit}) — {mark}")
    return reached
