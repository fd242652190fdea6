"""What a simulation may have found, made up for reports."""

from typing import Any

POLICIES = ("egreedy", "egreedy/v2")


def _metric(mean: float, margin: float | None = 0.01) -> dict[str, Any]:
    curve = [mean * step / 30 for step in range(1, 31)]
    return {"mean": mean, "margin": margin, "total": mean * 300, "over_time": curve, "over_time_margin": curve}


def _arms(margin: float | None) -> dict[str, Any]:
    return {
        name: {
            "reward": _metric(0.1 + place / 10, margin),
            "regret": _metric(0.2),
            "completed": _metric(0.3),
            "dismissed": _metric(0.25),
        }
        for place, name in enumerate(POLICIES)
    }


def found(margin: float | None = 0.01) -> dict[str, Any]:
    return {
        "plan": {
            "simulator": 3,
            "world": {"name": "tips", "digest": "0" * 64},
            "seeds": {"first": 10_000, "count": 30},
            "steps": 300,
            "offered": 10,
        },
        "overall": _arms(margin),
        "personas": [
            {"name": "specialist", "about": "", "control": False, "arms": _arms(margin)},
            {"name": "chaotic", "about": "", "control": True, "arms": _arms(margin)},
        ],
        "answer": answer(0.1, 0.02 if margin else None),
    }


def answer(gap: float, half: float | None, seeds_needed: int | None = 45) -> dict[str, Any]:
    """The answer that egreedy/v2 is ahead of egreedy by so much, give or take `half`."""
    low, high = (None, None) if half is None else (gap - half, gap + half)
    ahead = {"egreedy": {"mean": gap, "low": low, "high": high, "seeds_needed": seeds_needed}}
    return {
        "best": "egreedy/v2",
        "certain": low is not None and low > 0,
        "ahead": ahead,
        "says": "egreedy/v2 earns most.",
        "next": {"text": "let it prove itself", "command": "tipbench sim gate --candidate egreedy/v2"},
    }


def found_by_a_gate(passed: bool = True) -> dict[str, Any]:
    conditions = [
        {"name": "gains overall", "passed": passed, "reason": "it earns so much more"},
        {"name": "egreedy, again fails", "passed": True, "reason": "it fails, as it must"},
    ]
    personas = [
        {"persona": "specialist", "control": False, "gain": 0.3, "lower_bound": 0.2, "wins": True},
        {"persona": "switcher", "control": False, "gain": -0.1, "lower_bound": -0.2, "wins": False},
        {"persona": "chaotic", "control": True, "gain": 0.0, "lower_bound": 0.0, "wins": False},
    ]
    pooled = {"gain": 0.1, "lower_bound": 0.05}
    verdict = {
        "passed": passed,
        "says": "egreedy/v2 may go live: it earns more." if passed else "egreedy/v2 may not go live, because it loses.",
        "pooled": pooled,
        "conditions": conditions,
        "roles": {"egreedy/v2": "candidate", "egreedy": "incumbent", "egreedy, again": "must fail"},
        "scorecard": {
            "stages": ["1–10", "11–30"],
            "arms": [
                {"name": name, "means": [0.1, 0.2], "margins": [0.01, 0.02]}
                for name in ("egreedy/v2", "egreedy", "egreedy, again")
            ],
        },
        "personas": personas,
    }
    return {**found(), "gate": verdict}
