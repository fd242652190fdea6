"""A replay from the log to the verdict, and what it found as data."""

from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from tipbench.core.errors import InvalidInput
from tipbench.core.untrusted import shown
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.replay.estimators import Estimate
from tipbench.recommender.replay.evaluation import Estimated, Evaluation, evaluated
from tipbench.recommender.replay.rounds import Rounds, rounds_of
from tipbench.recommender.replay.verdict import DECIDES, RULES, Verdict, judged
from tipbench.recommender.simulation.outcome import arm_data
from tipbench.recommender.simulation.rollout import ARMS, Arm


@dataclass(frozen=True)
class Replay:
    log: Path
    candidate: Arm
    share: float
    evaluation: Evaluation
    estimated: Estimated | None  # None: there was nothing to estimate from
    verdict: Verdict


def replayed(folder: Path, candidate: str, share: float) -> Replay:
    """Raises InvalidInput for a candidate or a share that can't be."""
    if candidate not in POLICIES:
        raise InvalidInput(f"there is no policy {shown(candidate)} to replay; there are {', '.join(POLICIES)}")
    if not 0 < share < 1:
        raise InvalidInput(f"a share of {share:g} leaves nothing to learn from, or nothing to estimate from; take 0.5")
    evaluation = evaluated(rounds_of(folder), POLICIES[candidate], share)
    estimated, verdict = judged(evaluation)
    return Replay(folder.absolute(), ARMS[candidate], share, evaluation, estimated, verdict)


def replay_data(replay: Replay) -> dict[str, Any]:
    evaluation, estimated = replay.evaluation, replay.estimated
    return {
        "candidate": arm_data(replay.candidate),
        "share": replay.share,
        "log": {"folder": str(replay.log), **_log_data(evaluation.rounds)},
        "learned": evaluation.learned,
        "evaluated": len(evaluation.columns.rewards),
        "with_profile": evaluation.told,
        "users": estimated.served.users if estimated else 0,
        "rules": asdict(RULES),
        "decides": DECIDES,
        "effective_sample": estimated.weights.effective_sample if estimated else 0.0,
        "largest_weight": estimated.weights.largest if estimated else 0.0,
        "served": _estimate_data(estimated.served) if estimated else None,
        "estimates": {
            name: {"value": _estimate_data(value), "gain": _estimate_data(estimated.gains[name])}
            for name, value in estimated.values.items()
        }
        if estimated
        else {},
        "verdict": {"passed": replay.verdict.passed, "status": replay.verdict.status, "reason": replay.verdict.reason},
    }


def _log_data(rounds: Rounds) -> dict[str, Any]:
    decided_ms = rounds.decided_ms
    return {
        "decisions": len(rounds),
        "first_ms": int(decided_ms.min()) if len(rounds) else None,
        "last_ms": int(decided_ms.max()) if len(rounds) else None,
        "left_out": asdict(rounds.left_out),
    }


def _estimate_data(estimate: Estimate) -> dict[str, float | None]:
    """None for what can't be told: the margin of one user alone, an estimate from weights that are all 0."""
    return {"mean": _known(estimate.value), "margin": _known(estimate.margin)}


def _known(value: float) -> float | None:
    return value if isfinite(value) else None
