"""A gate's verdict on a terminal: the answer first, then every reason."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from tipbench.cli.leaderboard import empty_table
from tipbench.cli.sim.run_report import headline
from tipbench.cli.workplace import out
from tipbench.untrusted import printable

_BAR = 24
_LEGEND = (
    "at least: with the confidence shared among all personas. better?: by Holm's adjustment, which is sharper, so that "
    "a persona may be better off although its bound is below 0."
)
_MARKS = {True: Text("✓", style="bold green"), False: Text("✗", style="bold red")}


class Contest(NamedTuple):
    candidate: str
    incumbent: str
    world: Path | None  # None: the built-in one


def show_gate(found: Mapping[str, Any], contest: Contest, kept_as: str) -> None:
    verdict = found["gate"]
    out.print(printable(in_short(verdict, contest)), style=f"bold {'green' if verdict['passed'] else 'red'}")
    out.print(printable(headline(found["plan"], len(found["personas"]))), style="dim", soft_wrap=True)
    out.print()
    for condition in verdict["conditions"]:
        line = Text.assemble(_MARKS[condition["passed"]], " ", (condition["name"], "bold"), f": {condition['reason']}")
        out.print(line)
    out.print()
    out.print(_personas(verdict))
    out.print(_LEGEND, style="dim", soft_wrap=True)
    out.print(printable(next_step(verdict, contest, kept_as)), soft_wrap=True)


def in_short(verdict: Mapping[str, Any], contest: Contest) -> str:
    said = f"{contest.candidate} against {contest.incumbent}"
    return f"PASSED: {said}" if verdict["passed"] else f"NOT PASSED: {said}"


def next_step(verdict: Mapping[str, Any], contest: Contest, kept_as: str) -> str:
    if verdict["passed"]:
        named = ("--world", str(contest.world)) if contest.world else ()
        words = ("tipbench", "recommend", "promote", contest.candidate, "--gate", kept_as, *named)
        return f"Kept as gate {kept_as}. To let it go live: {shlex.join(words)}"
    return f"Kept as gate {kept_as}. Nothing changes: {contest.incumbent} stays where it is."


def _personas(verdict: Mapping[str, Any]) -> Table:
    table = empty_table("Gain in reward a decision, by persona")
    table.add_column("persona", no_wrap=True)
    table.add_column("gain", justify="right", no_wrap=True)
    table.add_column("at least", justify="right", no_wrap=True)
    table.add_column("better?", no_wrap=True)
    table.add_column("at least ━ gain", no_wrap=True)
    personas = verdict["personas"]
    reach = max(max(abs(one["gain"]), abs(one["lower_bound"])) for one in personas)
    for one in personas:
        table.add_row(
            printable(one["persona"]),
            f"{one['gain']:+.3f}",
            f"{one['lower_bound']:+.3f}",
            Text("control", style="dim") if one["control"] else Text("yes", style="green") if one["wins"] else "no",
            _bar(one["lower_bound"], one["gain"], reach),
        )
    return table


def _bar(low: float, gain: float, reach: float) -> Text:
    """A line with 0 in its middle, thick from the bound to the gain."""
    half = _BAR // 2

    def at(value: float) -> int:
        return half + (round(value / reach * half) if reach else 0)

    start, end = at(low), at(gain)
    marks = ["─"] * (_BAR + 1)
    marks[start : end + 1] = "━" * (end - start + 1)
    marks[half] = "┼"
    marks[end] = "●"
    line = Text("".join(marks), style="dim")
    line.stylize("not dim green" if low > 0 else "not dim red" if gain < 0 else "not dim", start, end + 1)
    return line
