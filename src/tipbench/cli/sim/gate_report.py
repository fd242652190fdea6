"""A gate's verdict on a terminal: the outcome first, then every reason."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from tipbench.cli.console import out
from tipbench.cli.leaderboard import empty_table
from tipbench.cli.sim.run_report import free_width, headline
from tipbench.core.untrusted import printable
from tipbench.recommender.policies.catalog import SERVED, name_of
from tipbench.recommender.promotion.evidence import size_problems

_MAX_BAR, _MIN_BAR = 24, 8  # even, so that 0 is in the middle
_LEGEND = (
    "at least: with the confidence shared among all personas. better?: by Holm's adjustment, which is sharper, so that "
    "a persona may be better off although its bound is below 0."
)
_SCORECARD_LEGEND = "Reward per decision by stage of a life; the margin is half of the 95 % interval over seeds."
_MARKS = {True: Text("✓", style="bold green"), False: Text("✗", style="bold red")}


class Contest(NamedTuple):
    candidate: str
    incumbent: str
    world: Path | None  # None: the built-in one


def show_gate(found: Mapping[str, Any], contest: Contest, record_id: str) -> None:
    verdict = found["gate"]
    out.print(printable(verdict["says"]), style=f"bold {'green' if verdict['passed'] else 'red'}", soft_wrap=True)
    out.print(printable(headline(found["plan"], len(found["personas"]))), style="dim", soft_wrap=True)
    out.print()
    out.print(_scorecard(verdict))
    out.print(_SCORECARD_LEGEND, style="dim", soft_wrap=True)
    out.print()
    for condition in verdict["conditions"]:
        line = Text.assemble(_MARKS[condition["passed"]], " ", (condition["name"], "bold"), f": {condition['reason']}")
        out.print(line, soft_wrap=not out.is_terminal)
    out.print()
    room = free_width([_personas(verdict, _MIN_BAR)], out)
    out.print(_personas(verdict, max(_MIN_BAR, min(_MAX_BAR, _MIN_BAR + room // 2 * 2))))
    out.print(_LEGEND, style="dim", soft_wrap=True)
    out.print(printable(next_step(found, contest, record_id)), soft_wrap=True)


def next_step(found: Mapping[str, Any], contest: Contest, record_id: str) -> str:
    """Return what to do after the gate; `record_id` is empty if its record could not be stored."""
    if not record_id:
        return "It could not be stored, so it can't be used for a promotion."
    stored = f"Stored as gate {record_id}."
    if not found["gate"]["passed"]:
        return f"{stored} Nothing changes: {contest.incumbent} stays."
    if name_of(contest.candidate) not in SERVED:
        return f"{stored} {contest.candidate} is for comparisons only and can't go live."
    plan = found["plan"]
    reasons = size_problems(plan["seeds"]["first"], plan["seeds"]["count"], plan["steps"], plan["offered"])
    if reasons:
        return f"{stored} It can't be used for a promotion: {'; '.join(reasons)}. Run another one."
    named = ("--world", str(contest.world)) if contest.world else ()
    command = ("tipbench", "recommend", "promote", contest.candidate, "--gate", record_id, *named)
    return f"{stored} To make it live: {shlex.join(command)}"


def _scorecard(verdict: Mapping[str, Any]) -> Table:
    table = empty_table("Scorecard: decisions of a life")
    table.add_column("policy", overflow="fold")
    table.add_column("role", no_wrap=True)
    for stage in verdict["scorecard"]["stages"]:
        table.add_column(stage, justify="right", no_wrap=True)
    for one in verdict["scorecard"]["arms"]:
        figures = (f"{mean:.3f} ±{margin:.3f}" for mean, margin in zip(one["means"], one["margins"], strict=True))
        table.add_row(printable(one["name"]), verdict["roles"][one["name"]], *figures)
    return table


def _personas(verdict: Mapping[str, Any], bar: int) -> Table:
    table = empty_table("Gain in reward a decision, by persona")
    table.add_column("persona", no_wrap=True)
    table.add_column("gain", justify="right", no_wrap=True)
    table.add_column("at least", justify="right", no_wrap=True)
    table.add_column("better?", no_wrap=True)
    table.add_column("at least ━ gain" if bar == _MAX_BAR else "", no_wrap=True)
    personas = verdict["personas"]
    reach = max(max(abs(one["gain"]), abs(one["lower_bound"])) for one in personas)
    for one in personas:
        table.add_row(
            printable(one["persona"]),
            f"{one['gain']:+.3f}",
            f"{one['lower_bound']:+.3f}",
            Text("control", style="dim") if one["control"] else Text("yes", style="green") if one["wins"] else "no",
            _bar(one["lower_bound"], one["gain"], reach, bar // 2),
        )
    return table


def _bar(low: float, gain: float, reach: float, half: int) -> Text:
    """Draw a line with 0 in its middle, thick from the bound to the gain."""

    def at(value: float) -> int:
        return half + (round(value / reach * half) if reach else 0)

    start, end = at(low), at(gain)
    marks = ["─"] * (2 * half + 1)
    marks[start : end + 1] = "━" * (end - start + 1)
    marks[half] = "┼"
    marks[end] = "●"
    line = Text("".join(marks), style="dim")
    line.stylize("not dim green" if low > 0 else "not dim red" if gain < 0 else "not dim", start, end + 1)
    return line
