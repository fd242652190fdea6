"""The comparison of two experiments on a terminal."""

import click
from rich.text import Text

from tipbench.bench.compare.against import FORMATS, MARKS, ExperimentComparison, against_headline, change_range, remark
from tipbench.bench.compare.messages import figure
from tipbench.cli.console import out
from tipbench.cli.leaderboard import empty_table
from tipbench.core.untrusted import printable

AGAINST_FORMATS = ("table", *FORMATS)
_STYLES = {"better": "green", "worse": "red"}


def show_against(found: ExperimentComparison, form: str) -> None:
    if form != "table":
        click.echo(FORMATS[form](found))
        return
    out.print(printable(against_headline(found)), style="bold", soft_wrap=True)
    table = empty_table("")
    for title in ("", "model", "prompt"):
        table.add_column(title, overflow="fold")
    for title in ("before", "now", "change", "95 %"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("")
    for change in found.changes:
        style = _STYLES.get(change.verdict, "")
        verdict = ", ".join(part for part in (change.verdict, remark(change)) if part)
        table.add_row(
            Text(MARKS[change.verdict], style=style),
            printable(change.model),
            printable(change.prompt),
            figure(change.before),
            figure(change.now),
            Text(f"{change.change:+.2f}", style=f"bold {style}"),
            change_range(change),
            Text(verdict, style=style),
        )
    out.print(table)
    for note in found.notes:
        out.print(printable(note), style="yellow", soft_wrap=True)
