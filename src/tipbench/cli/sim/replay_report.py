"""A replay on a terminal: the verdict first, then its basis."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from tipbench.cli.console import out
from tipbench.cli.leaderboard import empty_table
from tipbench.core.untrusted import printable
from tipbench.recommender.replay.verdict import basis, estimate_text

_HEADS = {
    "passed": ("PASSED", "bold green"),
    "failed": ("NOT PASSED", "bold red"),
    "undecided": ("UNDECIDED", "bold yellow"),
    "thin": ("TOO THIN", "bold yellow"),
}


def show_replay(found: Mapping[str, Any], record_id: str) -> None:
    verdict = found["verdict"]
    head, style = _HEADS[verdict["status"]]
    out.print(printable(f"{head}: {found['candidate']['name']} against what was served"), style=style)
    out.print(printable(verdict["reason"]), soft_wrap=True)
    out.print()
    for line in basis(found):
        out.print(printable(line), soft_wrap=True)
    if found["served"]:
        out.print(_table(found))
        out.print(
            "gain: against what was served, on the same decisions. ±: the 95 % interval, with users as its units.",
            style="dim",
            soft_wrap=True,
        )
    out.print(record_line(record_id))


def record_line(record_id: str) -> str:
    return f"Stored as replay {record_id}."


def _table(found: Mapping[str, Any]) -> Table:
    table = empty_table(printable(f"Reward a decision: {found['candidate']['name']}, and what was served"))
    table.add_column("by", no_wrap=True)
    for name in ("mean", "gain"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_row("what was served", estimate_text(found["served"]), "")
    for name, estimate in found["estimates"].items():
        mark = " (decides)" if name == found["decides"] else ""
        table.add_row(f"{name}{mark}", estimate_text(estimate["value"]), estimate_text(estimate["gain"], "+"))
    return table
