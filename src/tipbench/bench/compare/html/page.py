"""The values behind the HTML report's templates; `report.html` is the page, `report_body.html` the report within."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from tipbench.bench.compare.effects import FactorEffects, GridEffects
from tipbench.bench.compare.html.heat import grid_means, heat_map, heat_scale, slice_means, slice_tables
from tipbench.bench.compare.html.plots import Bar, Point, effects_plot, interval_plot, scatter_plot
from tipbench.bench.compare.html.templates import make_environment
from tipbench.bench.compare.leaderboard import Leaderboard, prompt_label, row_label
from tipbench.bench.compare.leaderboard_row import LeaderboardRow
from tipbench.bench.compare.reliability import JudgedBatch
from tipbench.bench.compare.texts import TextPage
from tipbench.statistics.interval import Interval


@dataclass(frozen=True)
class Report:
    """The data that the page is made from."""

    board: Leaderboard
    batches: Sequence[JudgedBatch]
    alpha: Mapping[str, float | None]  # Krippendorff's, over counted judges, by criterion; empty with fewer than two
    texts: TextPage
    made_at: str
    calibrations: Mapping[str, str] = field(default_factory=dict)  # judge → what it was found to be worth, in short

    def to_html(self) -> str:
        """Return the report as one self-contained HTML file."""
        return as_html(self)


def as_html(report: Report) -> str:
    """Return the report as one self-contained HTML file."""
    css = Markup(_resource("foundation.css") + _resource("report.css"))  # safe: our own files
    return _environment().get_template("report.html").render(**report_values(report), css=css)


def report_values(
    report: Report,
    runs_of: Callable[[LeaderboardRow], str] | None = None,
    run_of: Callable[[str], str] | None = None,
) -> dict[str, Any]:
    """Return the values that the report's templates need; with `runs_of` and `run_of`, rows and texts have links."""
    board = report.board
    effects = board.effects if isinstance(board.effects, GridEffects) else None
    return {
        "report": report,
        "compared": [row for row in board.rows if row.rank],
        "anything_scored": any(row.composite is not None for row in board.rows),
        "criteria": [name for name in board.scores if name != "composite" and name not in board.flags],
        "heat": heat_map(board),
        "slices": slice_tables(board),
        "grid_scale": heat_scale(board.scales["composite"], grid_means(board)),
        "slices_scale": heat_scale(board.scales["composite"], slice_means(board)),
        "plots": {
            "intervals": _two_sizes(
                interval_plot, _interval_bars(board), board.scales["composite"], "Composite scores"
            ),
            "effects": _effect_plot(effects) if effects else None,
            "front": _two_sizes(scatter_plot, _points(board), "composite", "Quality against seconds"),
        },
        "points": _points(board),
        "effects": effects,
        "texts": report.texts,
        "texts_filter": "",  # a page that can filter texts has its form here, and the way to more of them
        "texts_more": "",
        **row_values(board, runs_of, run_of),
    }


def row_values(
    board: Leaderboard,
    runs_of: Callable[[LeaderboardRow], str] | None = None,
    run_of: Callable[[str], str] | None = None,
) -> dict[str, Any]:
    """Return the values that templates need to show rows and texts of a leaderboard."""
    return {
        "board": board,
        "label": lambda row: row_label(board, row),
        "prompt": lambda row: prompt_label(board, row),
        "runs_of": runs_of,
        "run_of": run_of,
    }


@cache
def _environment() -> Environment:
    return make_environment()


def _resource(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _two_sizes(plot: Callable[..., str], *figures: Any) -> Markup:
    """Draw a plot for wide pages and one for narrow pages; the style sheet shows one of them."""
    return Markup(plot(*figures) + plot(*figures, narrow=True))  # safe: escaped element by element


def _interval_bars(board: Leaderboard) -> list[Bar]:
    return [
        Bar(
            label=row_label(board, row),
            mean=row.composite,
            interval=row.intervals.get("composite"),
            possible=row.extremes if row.extremes.high - row.extremes.low > 1e-9 else None,
            emphasis=_is_top(row),
            remark="● top" if _is_top(row) else "",
        )
        for row in board.rows
    ]


def _is_top(row: LeaderboardRow) -> bool:
    return bool(row.rank and row.rank.top)


def _effect_plot(effects: GridEffects) -> Markup | None:
    """Return the plot of the effects of models and prompts, for those of which there are several; None without any."""
    factors = {"Models": effects.models, "Prompts": effects.prompts}
    shown = {name: _effect_bars(factor) for name, factor in factors.items() if len(factor.levels) > 1}
    return _two_sizes(effects_plot, shown, "Effects of models and prompts") if shown else None


def _effect_bars(factor: FactorEffects) -> list[Bar]:
    bars = []
    for level in factor.levels:
        interval = None if level.low is None or level.high is None else Interval(level.low, level.high)
        significant = interval is not None and not interval.low <= 0 <= interval.high
        bars.append(Bar(level.name, level.size, interval, None, emphasis=significant))
    return bars


def _points(board: Leaderboard) -> list[Point]:
    return [
        Point(number, row_label(board, one), one.composite, one.cost.seconds, one.on_front)
        for number, one in enumerate(board.rows, 1)
        if one.composite is not None and one.cost.seconds is not None
    ]
