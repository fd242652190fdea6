"""Small plots, one per persona, of each policy over time with its 95 % interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from markupsafe import Markup

from tipbench.bench.compare.html.drawing import Axis, Drawing, even_steps
from tipbench.server.views.simulations import ByPolicy, Metric, Outcome

COLOURS = 6  # in the style sheet, each with its own dash pattern
_WIDTH, _HEIGHT = 360.0, 210.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 12.0, 12.0, 38.0
_Point = tuple[float, float]


@dataclass(frozen=True)
class View:
    """A metric that the plots can show."""

    key: str
    label: str
    about: str
    metric: str
    summed: bool = False  # cumulative, from the first decision on


VIEWS = (
    View("reward", "Reward", "Mean reward per decision; higher is better.", "reward"),
    View("total", "Cumulative reward", "Reward from the first decision on; higher is better.", "reward", summed=True),
    View("regret", "Regret", "What an oracle would have earned in addition, per decision; lower is better.", "regret"),
    View("lost", "Cumulative regret", "Regret from the first decision on; lower is better.", "regret", summed=True),
    View("completed", "Completed", "Share of tips that were completed.", "completed"),
    View("dismissed", "Dismissed", "Share of tips that were dismissed.", "dismissed"),
)


@dataclass(frozen=True)
class _Curve:
    """The points of one policy, each with the margin of its interval to either side; None: unknown."""

    policy: str
    index: int  # among the policies; determines its colour
    points: Sequence[_Point]
    margins: Sequence[float | None]
    summary: str

    @property
    def ends(self) -> list[float]:
        points = [(value, margin or 0.0) for (_, value), margin in zip(self.points, self.margins, strict=True)]
        return [end for value, margin in points for end in (value - margin, value + margin)]


@dataclass(frozen=True)
class PersonaPlot:
    name: str
    about: str
    control: bool
    svg: Markup


def view_of(key: str) -> View:
    """Return the view with this key; the first one if there is none."""
    return next((view for view in VIEWS if view.key == key), VIEWS[0])


def curve_values(outcome: Outcome, show: str, path: str) -> dict[str, Any]:
    """Return the values for the template of the plots, on the page at this path."""
    view = view_of(show)
    return {
        "plots": persona_plots(outcome, view),
        "view": view,
        "views": VIEWS,
        "colours": COLOURS,
        "path_of_plots": path,
    }


def persona_plots(outcome: Outcome, view: View) -> list[PersonaPlot]:
    """Plot all personas on one scale, so that one for which nothing can be gained looks flat."""
    drawn = [(persona, _curves(outcome, persona.arms, view)) for persona in outcome.personas]
    ends = [end for _, curves in drawn for curve in curves for end in curve.ends]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    padding = max(1e-6, 0.04 * (high - low))
    scale = (low - padding, high + padding)
    return [
        PersonaPlot(
            persona.name,
            persona.about,
            persona.control,
            Markup(_draw(curves, scale, outcome.plan.steps, f"{view.label} of {persona.name}")),
        )
        for persona, curves in drawn
    ]


def _curves(outcome: Outcome, found: ByPolicy, view: View) -> list[_Curve]:
    points = _summed if view.summed else _over_time
    return [
        _Curve(policy, index, *points(found[policy][view.metric], outcome), _summary(found[policy][view.metric], view))
        for index, policy in enumerate(outcome.policies)
    ]


def _over_time(metric: Metric, outcome: Outcome) -> tuple[list[_Point], list[float | None]]:
    """Return points, each in the middle of the decisions that it is the mean of, and their margins."""
    middles = [(start + end) / 2 for start, end in pairwise([0, *outcome.bins])]
    return list(zip(middles, metric.over_time, strict=True)), metric.over_time_margin


def _summed(metric: Metric, outcome: Outcome) -> tuple[list[_Point], list[float | None]]:
    """Return cumulative points and their margins; the margin is known only for the sum over a whole life."""
    sizes = [end - start for start, end in pairwise([0, *outcome.bins])]
    sums = accumulate((mean * size for mean, size in zip(metric.over_time, sizes, strict=True)), initial=0.0)
    points = list(zip([0.0, *map(float, outcome.bins)], sums, strict=True))
    last_margin = None if metric.margin is None else metric.margin * outcome.plan.steps
    return points, [*[None] * len(sizes), last_margin]


def _summary(metric: Metric, view: View) -> str:
    margin = "" if metric.margin is None else f" ± {metric.margin:.3f}"
    return f"{metric.total:.1f} in all" if view.summed else f"{metric.mean:.3f}{margin} on average"


def _draw(curves: Sequence[_Curve], scale: tuple[float, float], steps: int, title: str) -> str:
    x, y = Axis(0.0, steps, _LEFT, _WIDTH - _RIGHT), Axis(*scale, _HEIGHT - _BOTTOM, _TOP)
    description = "; ".join(f"{curve.policy}: {curve.summary}" for curve in curves)
    drawing = Drawing(_WIDTH, _HEIGHT, title, f"{description}.", "curves")
    drawing.group("axis")
    for tick in even_steps(*scale, 7):
        drawing.line(x.start, y.at(tick), x.end, y.at(tick), "zero" if abs(tick) < 1e-9 else "grid")
        drawing.text(x.start - 6, y.at(tick) + 4, f"{tick:g}", "tick end")
    for tick in even_steps(0, steps, 4):
        drawing.text(x.at(tick), y.start + 16, f"{tick:g}", "tick middle")
    drawing.text(x.end, _HEIGHT - 5, "decisions", "name end")
    for curve in curves:
        drawing.group(f"arm arm-{curve.index % COLOURS}", f"{curve.policy}: {curve.summary}")
        _interval(drawing, x, y, curve)
    for curve in curves:
        drawing.group(f"arm arm-{curve.index % COLOURS}", f"{curve.policy}: {curve.summary}")
        drawing.path([(x.at(step), y.at(value)) for step, value in curve.points], "curve")
    return drawing.svg()


def _interval(drawing: Drawing, x: Axis, y: Axis, curve: _Curve) -> None:
    known = [(point, margin) for point, margin in zip(curve.points, curve.margins, strict=True) if margin is not None]
    high = [(x.at(step), y.at(value + margin)) for (step, value), margin in known]
    low = [(x.at(step), y.at(value - margin)) for (step, value), margin in known]
    if len(known) == 1:
        offset = 2.0 * curve.index  # the bars of all policies are at the same step
        drawing.line(high[0][0] - offset, high[0][1], low[0][0] - offset, low[0][1], "reach")
    elif known:
        drawing.area([*high, *reversed(low)], "band")
