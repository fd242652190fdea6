"""The results of `tipbench sim run` on a terminal."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tipbench.cli.console import out
from tipbench.cli.leaderboard import empty_table
from tipbench.core.text import counted
from tipbench.core.untrusted import printable

_HEIGHTS = "▁▂▃▄▅▆▇█"
COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")  # of policies, in order
_TOTAL = "total"
_COLUMNS = ("reward", _TOTAL, "regret", "done", "no")
_MAX_CURVE = 30
_MIN_CURVE = 6


# Sparklines: curves over time, as small as a word.


def curve(values: Sequence[float], width: int, low: float, high: float, colour: str) -> Text:
    """Draw a sparkline; `low` and `high` are the extremes of all curves that it is shown with."""
    points = downsample(values, width)
    span = high - low
    levels = [int((point - low) / span * len(_HEIGHTS)) if span > 0 else 0 for point in points]
    return Text("".join(_HEIGHTS[max(0, min(level, len(_HEIGHTS) - 1))] for level in levels), style=colour)


def downsample(values: Sequence[float], width: int) -> list[float]:
    """Return the means of `width` consecutive parts; the values themselves if there are fewer."""
    count = min(width, len(values))
    cuts = [len(values) * number // count for number in range(count + 1)]
    return [sum(values[start:end]) / (end - start) for start, end in pairwise(cuts)]


class _Row(NamedTuple):
    policy: str
    metrics: Mapping[str, Any]
    colour: str


def show_run(found: Mapping[str, Any]) -> None:
    plan = found["plan"]
    out.print(printable(headline(plan, len(found["personas"]))), style="bold", soft_wrap=True)
    narrow = free_width(_tables(found, _MIN_CURVE), out) < 0
    room = free_width(_tables(found, _MIN_CURVE, narrow), out)
    for table in _tables(found, max(_MIN_CURVE, min(_MAX_CURVE, _MIN_CURVE + room)), narrow):
        out.print(table)
    for line in _legend(plan):
        out.print(line, style="dim", soft_wrap=True)


def headline(plan: Mapping[str, Any], personas: int) -> str:
    first, count = plan["seeds"]["first"], plan["seeds"]["count"]
    parts = (
        counted(personas, "persona"),
        f"seed {first}" if count == 1 else f"seeds {first}–{first + count - 1}",
        f"{counted(plan['steps'], 'decision')} a life",
        f"{counted(plan['offered'], 'tip')} to choose from",
    )
    return f"World '{plan['world']['name']}': {', '.join(parts)}"


def free_width(tables: Sequence[Table], console: Console) -> int:
    """Return how many columns of the terminal the widest table leaves free; below 0 if figures would be cut off."""
    unbounded = console.options.update(max_width=10_000)
    return console.width - max(console.measure(table, options=unbounded).maximum for table in tables)


def margin_text(metric: Mapping[str, Any]) -> str:
    """Format a mean with its margin of error, which is unknown with one seed."""
    margin = metric["margin"]
    return f"{metric['mean']:.3f} ±{'?' if margin is None else f'{margin:.3f}'}"


def _tables(found: Mapping[str, Any], width: int, narrow: bool = False) -> list[Table]:
    """Return the tables; narrow ones have no total, and personas are above their policies instead of beside them."""
    columns = tuple(name for name in _COLUMNS if not (narrow and name == _TOTAL))
    overall = _table("Over all personas", ("policy",), columns, width)
    _add(overall, "", found["overall"], width, best=True)
    by_persona = _table("By persona", ("policy",) if narrow else ("persona", "policy"), columns, width)
    for persona in found["personas"]:
        name = printable(persona["name"]) + (" °" if persona["control"] else "")
        _add(by_persona, name, persona["arms"], width, best=not persona["control"])
    return [overall, by_persona]


def _table(title: str, names: Sequence[str], figures: Sequence[str], width: int) -> Table:
    table = empty_table(title)
    for name in names:
        table.add_column(name, no_wrap=True)
    for name in figures:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("time →", no_wrap=True, min_width=width)
    return table


def _add(table: Table, name: str, arms: Mapping[str, Any], width: int, best: bool) -> None:
    headers = [column.header for column in table.columns]
    has_persona_column = "persona" in headers
    if name and not has_persona_column:
        table.add_row(Text(name, style="bold"))
    rows = [_Row(arm, arms[arm], COLOURS[index % len(COLOURS)]) for index, arm in enumerate(arms)]
    points = [point for row in rows for point in downsample(row.metrics["reward"]["over_time"], width)]
    highest = max(row.metrics["reward"]["mean"] for row in rows)
    for index, row in enumerate(rows):
        reward = row.metrics["reward"]
        leads = best and len(rows) > 1 and reward["mean"] == highest
        table.add_row(
            *([name if index == 0 else ""] if has_persona_column else []),
            Text(printable(row.policy), style=row.colour),
            Text(margin_text(reward), style="bold" if leads else ""),
            *(text for column, text in _figures(row.metrics).items() if column in headers),
            curve(reward["over_time"], width, min(points), max(points), row.colour),
            end_section=index == len(rows) - 1,
        )


def _figures(metrics: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the formatted figures by column, in order."""
    return {
        _TOTAL: f"{metrics['reward']['total']:.1f}",
        "regret": f"{metrics['regret']['total']:.1f}",
        "done": f"{metrics['completed']['mean']:.0%}",
        "no": f"{metrics['dismissed']['mean']:.0%}",
    }


def _legend(plan: Mapping[str, Any]) -> list[str]:
    return [
        "reward: a decision, with its 95 % interval over seeds; total: over a life; regret: against an oracle that "
        "knows the persona; done, no: tips completed and dismissed; time: the reward from the first decision "
        f"to number {plan['steps']}, on one scale for each persona; ° a control, with whom no policy can do better "
        "than another."
    ]
