"""The results of `tipbench sim run` on a terminal."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tipbench.bench.records import NextStep
from tipbench.cli.console import out, print_answer
from tipbench.cli.leaderboard import empty_table
from tipbench.core.text import counted
from tipbench.core.untrusted import printable
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.simulation.gate import DEFAULT_SIZE, FIRST_SEED, RULES

_HEIGHTS = "▁▂▃▄▅▆▇█"
COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")  # of policies, in order
_TOTAL = "total"
_COLUMNS = ("reward", _TOTAL, "regret", "done", "no")
_MAX_CURVE = 30
_MIN_CURVE = 6
_MANY_SEEDS = 2_000  # a simulation of that size takes a quarter of an hour


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


def show_run(found: Mapping[str, Any], verbose: bool = False) -> None:
    """Print which policy earns most and what to do next, with a small table; with `verbose`, all figures."""
    plan, answer = found["plan"], found["answer"]
    print_answer(answer["says"], NextStep(**answer["next"]))
    if not verbose:
        out.print(_small_table(found))
    out.print(printable(headline(plan, len(found["personas"]))), style="dim", soft_wrap=True)
    if verbose:
        _show_everything(found)
    else:
        out.print("More: --verbose (by persona, over time, regret), --format json (everything).", style="dim")


def _small_table(found: Mapping[str, Any]) -> Table:
    """Three columns that fit 80 characters."""
    table = empty_table("")
    table.add_column("policy", overflow="fold")
    table.add_column("reward a decision, 95 %", justify="right", no_wrap=True)
    table.add_column("behind the best", no_wrap=True)
    for name in (found["answer"]["best"], *found["answer"]["ahead"]):
        reward = found["overall"][name]["reward"]
        table.add_row(printable(name), margin_text(reward), _behind(found["answer"]["ahead"].get(name)))
    return table


def _behind(gap: Mapping[str, Any] | None) -> str:
    if gap is None:
        return "–"
    chance = "" if gap["low"] is not None and gap["low"] > 0 else ", may be chance"
    return f"{gap['mean']:.3f}{chance}"


def _show_everything(found: Mapping[str, Any]) -> None:
    narrow = free_width(_tables(found, _MIN_CURVE), out) < 0
    room = free_width(_tables(found, _MIN_CURVE, narrow), out)
    for table in _tables(found, max(_MIN_CURVE, min(_MAX_CURVE, _MIN_CURVE + room)), narrow):
        out.print(table)
    for line in _legend(found["plan"]):
        out.print(line, style="dim", soft_wrap=True)


# The answer.


def with_answer(found: Mapping[str, Any], again: Sequence[str], world: Path | None, live: str | None) -> dict[str, Any]:
    """Add the answer in words and the next step to what was found.

    `again` is the command that was typed, without its number of seeds; `live` is the live policy, None if unknown.
    """
    answer = found["answer"]
    step = _next_step(found, again, ("--world", str(world)) if world else (), live)
    next_data = {"text": step.text, "command": step.command}
    return {**found, "answer": {**answer, "says": _says(found), "next": next_data}}


def _says(found: Mapping[str, Any]) -> str:
    answer = found["answer"]
    best, ahead = answer["best"], answer["ahead"]
    earned = f"{found['overall'][best]['reward']['mean']:.3f} a decision"
    if not ahead:
        return f"{best} earns {earned}; there is no other policy to compare it with."
    if found["plan"]["seeds"]["count"] == 1:
        return f"No answer yet: one seed can't tell a better policy from luck. {best} earned most, {earned}."
    if answer["certain"]:
        second, gap = next(iter(ahead.items()))
        of = f", the second of {len(ahead) + 1}" if len(ahead) > 1 else ""
        return f"{best} earns most, {earned}: {gap['mean']:.3f} more than {second}{of} ({_interval(gap)})."
    if _is_practically_equal(answer):
        which = _listed([best, *_rivals(answer)])
        return f"{which} earn practically the same: {best} has the highest mean, {earned}, and that may be chance."
    rival = next(iter(_rivals(answer)))
    gap = ahead[rival]
    lead = f"its lead of {gap['mean']:.3f} over {rival}"
    return f"Undecided: {best} has the highest mean, {earned}, but {lead} may be chance ({_interval(gap)})."


def _interval(gap: Mapping[str, Any]) -> str:
    return f"95 % interval: {gap['low']:.3f} to {gap['high']:.3f}"


def _rivals(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the policies that may be as good as the best, or better."""
    return {name: gap for name, gap in answer["ahead"].items() if gap["low"] is None or gap["low"] <= 0}


def _is_practically_equal(answer: Mapping[str, Any]) -> bool:
    """Return whether the best is not ahead of its rivals by a gain that the gate calls worth having."""
    return all(gap["high"] < RULES.least_gain for gap in _rivals(answer).values())


def _next_step(found: Mapping[str, Any], again: Sequence[str], world: Sequence[str], live: str | None) -> NextStep:
    answer, plan = found["answer"], found["plan"]
    if not answer["ahead"]:
        return NextStep("name the policies to compare it with", "tipbench sim run --help")
    if plan["seeds"]["count"] == 1:
        return NextStep("simulate more lives", shlex.join((*again, "--seeds", str(DEFAULT_SIZE.seeds))))
    contenders = [name for name in (answer["best"], *_rivals(answer)) if name in SERVED]
    seeds = _more_seeds(answer, plan["seeds"]["count"])
    if len(contenders) > 1 and seeds and not _is_practically_equal(answer):
        return NextStep("simulate more lives", shlex.join((*again, "--seeds", str(seeds))))
    candidate = next((name for name in (*contenders, *answer["ahead"]) if name in SERVED), None)
    if candidate is None:
        return NextStep(f"none of these can go live; {', '.join(SERVED)} can", "tipbench sim run")
    if live in (candidate, *contenders):
        return NextStep(f"keep {live}, which is live: none that can go live is shown to be better")
    first = max(FIRST_SEED, plan["seeds"]["first"] + plan["seeds"]["count"])
    fresh = ("--candidate", candidate, "--first-seed", str(first), *world)
    why = "" if candidate == answer["best"] else f" ({answer['best']} is for comparisons only and can't go live)"
    text = f"let {candidate} prove itself against {live or 'the live policy'} on other lives{why}"
    return NextStep(text, shlex.join(("tipbench", "sim", "gate", *fresh)))


def _more_seeds(answer: Mapping[str, Any], seeds: int) -> int | None:
    """Return how many seeds would probably decide it, rounded up; None if too many to be worth it."""
    needed: list[int | None] = [gap["seeds_needed"] for gap in _rivals(answer).values()]
    most = max((_MANY_SEEDS + 1 if one is None else one for one in needed), default=0)
    return None if most > _MANY_SEEDS else -(-max(most, 2 * seeds) // 10) * 10


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


# The tables.


def headline(plan: Mapping[str, Any], personas: int) -> str:
    first, count = plan["seeds"]["first"], plan["seeds"]["count"]
    parts = (
        counted(personas, "persona"),
        f"seed {first}" if count == 1 else f"seeds {first}–{first + count - 1}",
        f"{counted(plan['steps'], 'decision')} per life",
        f"{counted(plan['offered'], 'tip')} to choose from",
    )
    return f"World '{plan['world']['name']}', version {plan['simulator']}: {', '.join(parts)}"


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
        "reward: per decision, with its 95 % interval over seeds; total: over a life; regret: against an oracle that "
        "knows the persona; done, no: tips completed and dismissed; time: the reward from the first decision "
        f"to number {plan['steps']}, on one scale for each persona; ° a control, with whom no policy can do better "
        "than another."
    ]
