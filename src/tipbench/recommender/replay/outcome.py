"""Run a replay, from the log to the verdict, and convert its result to plain data."""

from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from tipbench.core.errors import InvalidInput
from tipbench.core.untrusted import shown
from tipbench.recommender.policies.catalog import POLICIES, fitted_until, name_of
from tipbench.recommender.prior.interface import ReadPrior
from tipbench.recommender.replay.estimators import Estimate
from tipbench.recommender.replay.evaluation import Estimated, Evaluation, evaluate
from tipbench.recommender.replay.rounds import Rounds, load_rounds
from tipbench.recommender.replay.verdict import DECIDES, RULES, Verdict, judge
from tipbench.recommender.simulation.outcome import arm_data
from tipbench.recommender.simulation.rollout import Arm, arm


@dataclass(frozen=True)
class Replay:
    log: Path
    candidate: Arm
    share: float
    evaluation: Evaluation
    estimated: Estimated | None  # None: no decision could be evaluated
    verdict: Verdict


def run_replay(folder: Path, candidate: str, share: float, read_prior: ReadPrior | None = None) -> Replay:
    """Replay the log in a folder with a candidate policy; raise InvalidInput for an unknown candidate or bad share."""
    if name_of(candidate) not in POLICIES:
        raise InvalidInput(f"there is no policy {shown(candidate)} to replay; there are {', '.join(POLICIES)}")
    if not 0 < share < 1:
        raise InvalidInput(f"a share of {share:g} leaves nothing to learn from or nothing to estimate from; use 0.5")
    contender = arm(candidate, read_prior)
    evaluation = evaluate(load_rounds(folder), contender.policy, share, fitted_until(contender.policy))
    estimated, verdict = judge(evaluation)
    return Replay(folder.absolute(), contender, share, evaluation, estimated, verdict)


def replay_data(replay: Replay) -> dict[str, Any]:
    evaluation, estimated = replay.evaluation, replay.estimated
    return {
        "candidate": arm_data(replay.candidate),
        "share": replay.share,
        "log": {"folder": str(replay.log), **_log_data(evaluation.rounds)},
        "learned": evaluation.learned,
        "evaluated": len(evaluation.columns.rewards),
        "with_profile": evaluation.with_profile,
        "fitted": evaluation.fitted,
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
    """Return mean and margin; None where undefined, as with a single user, or with weights that are all 0."""
    return {"mean": _finite_or_none(estimate.value), "margin": _finite_or_none(estimate.margin)}


def _finite_or_none(value: float) -> float | None:
    return value if isfinite(value) else None
