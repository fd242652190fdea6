"""Gates: the list, and one with its verdict and every reason for it."""

import shlex
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response
from markupsafe import Markup

from tipbench.recommender.promotion.gate_records import GateCondition
from tipbench.server.built_in_world import built_in_world
from tipbench.server.ui import urls
from tipbench.server.ui.gate_bars import gate_bars
from tipbench.server.ui.pages import page
from tipbench.server.ui.parts import Parts
from tipbench.server.ui.persona_curves import curve_values
from tipbench.server.views.gates import Gate

_RULES = {
    "least_gain": "over all personas, the lower bound of the gain has to be above",
    "least_wins": "share of the personas, controls apart, that have to be better off",
    "worst_loss": "no persona’s lower bound may be below minus",
    "level": "confidence of all bounds",
}


@dataclass(frozen=True)
class Reasons:
    """The conditions of a verdict: those on the candidate, and those on the gate itself."""

    candidate: list[GateCondition]
    checks: list[GateCondition]


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)
    room = parts.recommender

    @pages.get(urls.GATES)
    def gates(request: Request) -> Response:
        return page(request, parts, "gates.html", gates=room.gates.lines())

    @pages.get(urls.GATES + "/{gate_id}")
    def gate(request: Request, gate_id: str, show: str = "") -> Response:
        found = room.gates.gate(gate_id)
        now_ms = round(parts.clock() * 1000)
        return page(
            request,
            parts,
            "gate.html",
            gate=found,
            reasons=reasons_of(found),
            why_not=room.promotions.why_not(found.candidate, found.id, now_ms) if found.verdict.passed else "",
            own_world=found.plan.world.digest != built_in_world().digest,
            promote=shlex.join(("tipbench", "recommend", "promote", found.candidate, "--gate", found.id)),
            rules=[(_RULES.get(name, name), value) for name, value in found.rules.items()],
            bars=[Markup(gate_bars(found, narrow)) for narrow in (False, True)],
            outcome=found.outcome,
            **curve_values(found.outcome, show, urls.gate(found.id)),
        )

    return pages


def reasons_of(gate: Gate) -> Reasons:
    of_itself = {f"{arm['name']} fails" for arm in gate.plan.arms[2:]}
    return Reasons(
        [one for one in gate.verdict.conditions if one.name not in of_itself],
        [one for one in gate.verdict.conditions if one.name in of_itself],
    )
