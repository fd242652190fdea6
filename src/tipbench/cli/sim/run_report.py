"""What `tipbench sim run` found, on a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rich.table import Table
from rich.text import Text

from tipbench.cli.leaderboard import empty_table
from tipbench.cli.sim.curves import COLOURS, curve, squeezed
from tipbench.cli.workplace import out
from tipbench.untrusted import printable

_COLUMNS = ("reward", "total", "regret", "done", "no")
_MOST_CURVE = 30
_LEAST_CURVE = 6


class _Row(NamedTuple):
    policy: str
    metrics: Mapping[str, Any]
    colour: str


def show_run(found: Mapping[str, Any]) -> None:
    plan = found["plan"]
    out.print(printable(headline(plan, len(found["personas"]))), style="bold", soft_wrap=True)
    narrow = _tables(found, _LEAST_CURVE)
    room = min(out.width - out.measure(table, options=out.options.update(max_width=10_000)).maximum for table in narrow)
    for table in _tables(found, max(_LEAST_CURVE, min(_MOST_CURVE, _LEAST_CURVE + room))):
        out.print(table)
    for line in _legend(plan):
        out.print(line, style="dim", soft_wrap=True)


def headline(plan: Mapping[str, Any], personas: int) -> str:
    seeds = plan["seeds"]
    last = seeds["first"] + seeds["count"] - 1
    return (
        f"World '{plan['world']['name']}': {personas} {'persona' if personas == 1 else 'personas'}, seeds "
        f"{seeds['first']}–{last}, {plan['steps']} decisions a life, {plan['offered']} tips to choose from"
    )


def margin_text(metric: Mapping[str, Any]) -> str:
    """With what it may be off by; one seed says nothing about that."""
    margin = metric["margin"]
    return f"{metric['mean']:.3f} ±{'?' if margin is None else f'{margin:.3f}'}"


def _tables(found: Mapping[str, Any], width: int) -> list[Table]:
    overall = _table("Over all personas", width)
    _add(overall, "", found["overall"], width, best=True)
    by_persona = _table("By persona", width)
    for persona in found["personas"]:
        name = printable(persona["name"]) + (" °" if persona["control"] else "")
        _add(by_persona, name, persona["arms"], width, best=not persona["control"])
    return [overall, by_persona]


def _table(title: str, width: int) -> Table:
    table = empty_table(title)
    table.add_column("persona" if title == "By persona" else "", no_wrap=True)
    table.add_column("policy", no_wrap=True)
    for name in _COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("time →", no_wrap=True, min_width=width)
    return table


def _add(table: Table, name: str, arms: Mapping[str, Any], width: int, best: bool) -> None:
    rows = [_Row(arm, arms[arm], COLOURS[place % len(COLOURS)]) for place, arm in enumerate(arms)]
    points = [point for row in rows for point in squeezed(row.metrics["reward"]["over_time"], width)]
    highest = max(row.metrics["reward"]["mean"] for row in rows)
    for place, row in enumerate(rows):
        reward = row.metrics["reward"]
        leads = best and len(rows) > 1 and reward["mean"] == highest
        table.add_row(
            name if place == 0 else "",
            Text(printable(row.policy), style=row.colour),
            Text(margin_text(reward), style="bold" if leads else ""),
            *_figures(row.metrics),
            curve(reward["over_time"], width, min(points), max(points), row.colour),
            end_section=place == len(rows) - 1,
        )


def _figures(metrics: Mapping[str, Any]) -> Sequence[str]:
    return (
        f"{metrics['reward']['total']:.1f}",
        f"{metrics['regret']['total']:.1f}",
        f"{metrics['completed']['mean']:.0%}",
        f"{metrics['dismissed']['mean']:.0%}",
    )


def _legend(plan: Mapping[str, Any]) -> list[str]:
    return [
        "reward: a decision, with its 95 % interval over seeds; total: over a life; regret: against an oracle that "
        "knows the persona; done, no: tips completed and dismissed; time: the reward from the first decision "
        f"to number {plan['steps']}, on one scale for each persona; ° a control, with whom no policy can do better "
        "than another."
    ]
