"""Gates: the list, and a single gate with its verdict and all reasons."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from tipbench.bench.compare.html.drawing import Axis, Drawing, even_steps, shortened
from tipbench.recommender.promotion.gate_records import GateCondition
from tipbench.server.jobs.simulation_asked import built_in_world
from tipbench.server.ui import urls
from tipbench.server.ui.pages import Parts, page
from tipbench.server.ui.persona_curves import curve_values
from tipbench.server.views.gates import Gate

_WIDE, _NARROW = 960.0, 340.0
_EDGE = 12.0
_LETTER = 8.0
_AXIS = 26.0
_LEGEND = 24.0
_RULES = {
    "least_gain": "over all personas, the lower bound of the gain over the incumbent and each baseline must be above",
    "least_wins": "share of the personas, except controls, that must be better off",
    "worst_loss": "no persona’s and no stage’s lower bound may be below minus",
    "least_prior_gain": "the lower bound of what a prior gains over none must be above",
    "worst_prior_loss": "the same bound for the prior that is to be served may not be below minus",
    "level": "confidence of all bounds",
}


# A gate's gains as bars around 0, each from the lower bound to the measured gain, with the thresholds.


@dataclass(frozen=True)
class _Bar:
    label: str
    gain: float
    bound: float
    needed: float | None  # the threshold for the bound; None: the rule is unknown
    kind: str
    remark: str


def gate_bars(gate: Gate, narrow: bool = False) -> str:
    bars = _bars(gate)
    ends = [abs(end) for bar in bars for end in (bar.gain, bar.bound, bar.needed or 0.0)]
    reach = max(0.01, 1.08 * max(ends))
    width, pitch = (_NARROW, 46.0) if narrow else (_WIDE, 32.0)
    labels = [shortened(bar.label, 30) for bar in bars]
    left = _EDGE if narrow else 2 * _EDGE + _LETTER * max(map(len, labels))
    axis = Axis(-reach, reach, left, width - (_EDGE if narrow else 260.0))
    bottom = _LEGEND + pitch * len(bars)
    description = ", ".join(f"{bar.label} {bar.gain:+.3f}, at least {bar.bound:+.3f}" for bar in bars)
    drawing = Drawing(width, bottom + _AXIS, "Gain per decision", f"{description}.", "narrow" if narrow else "wide")
    _draw_axis(drawing, axis, bottom, 5 if narrow else 9)
    for number, (bar, label) in enumerate(zip(bars, labels, strict=True)):
        top = _LEGEND + number * pitch
        middle = top + (32.0 if narrow else pitch / 2)
        text_y = top + 17.0 if narrow else middle + 4.5
        drawing.group(f"gain {bar.kind}", f"{bar.label}: {bar.gain:+.4f}, at least {bar.bound:+.4f}{bar.remark}")
        drawing.text(_EDGE, text_y, label, "label")
        figures = f"{bar.gain:+.3f}, at least {bar.bound:+.3f}"
        drawing.text(width - _EDGE, text_y, figures if narrow else f"{figures}{bar.remark}", "figures end")
        if bar.needed is not None:
            drawing.line(axis.at(bar.needed), middle - 11, axis.at(bar.needed), middle + 11, "needed")
        low, high = sorted((axis.at(bar.bound), axis.at(bar.gain)))
        drawing.rect(low, middle - 3, max(1.0, high - low), 6, "interval", rx=3)
        drawing.circle(axis.at(bar.gain), middle, 5.5, "mean")
    return drawing.svg()


def _bars(gate: Gate) -> Sequence[_Bar]:
    pooled = gate.verdict.pooled
    least, worst = gate.rules.get("least_gain"), gate.rules.get("worst_loss")
    enough = least is None or pooled.lower_bound > least
    bars = [_Bar("all personas", pooled.gain, pooled.lower_bound, least, "better" if enough else "worse", "")]
    for one in gate.verdict.personas:
        harmed = worst is not None and one.lower_bound <= -worst
        kind = "worse" if harmed else "better" if one.wins else "same"
        remark = " · control" if one.control else " · better" if one.wins else ""
        needed = None if worst is None else -worst
        bars.append(_Bar(one.persona, one.gain, one.lower_bound, needed, kind, remark))
    return bars


def _draw_axis(drawing: Drawing, axis: Axis, bottom: float, most: int) -> None:
    drawing.group("axis")
    for tick in even_steps(axis.low, axis.high, most):
        is_zero = abs(tick) < 1e-9
        drawing.line(axis.at(tick), _LEGEND / 2, axis.at(tick), bottom, "zero" if is_zero else "grid")
        drawing.text(axis.at(tick), bottom + 16, "0" if is_zero else f"{tick:+g}", "tick middle")


@dataclass(frozen=True)
class Reasons:
    """The conditions of a verdict: those on the candidate, and those that check the gate itself."""

    candidate: list[GateCondition]
    checks: list[GateCondition]


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)
    views = parts.recommender

    @pages.get(urls.GATES)
    def gates(request: Request) -> Response:
        return page(request, parts, "gates.html", gates=views.gates.lines())

    @pages.get(urls.GATES + "/{gate_id}")
    def gate(request: Request, gate_id: str, show: str = "") -> Response:
        found = views.gates.gate(gate_id)
        now_ms = round(parts.clock() * 1000)
        return page(
            request,
            parts,
            "gate.html",
            gate=found,
            reasons=reasons_of(found),
            why_not=views.promotions.why_not(found.candidate_name, found.id, now_ms) if found.verdict.passed else "",
            own_world=found.plan.world.digest != built_in_world().digest,
            promote=shlex.join(("tipbench", "recommend", "promote", found.candidate_name, "--gate", found.id)),
            rules=[(_RULES.get(name, name), value) for name, value in found.rules.items()],
            bars=[Markup(gate_bars(found, narrow)) for narrow in (False, True)],
            outcome=found.outcome,
            **curve_values(found.outcome, show, urls.gate(found.id)),
        )

    return pages


def reasons_of(gate: Gate) -> Reasons:
    arms = enumerate(str(arm["name"]) for arm in gate.plan.arms)
    self_checks = {f"{name} fails" for number, name in arms if gate.verdict.role(name, number) == "must fail"}
    return Reasons(
        [one for one in gate.verdict.conditions if one.name not in self_checks],
        [one for one in gate.verdict.conditions if one.name in self_checks],
    )
