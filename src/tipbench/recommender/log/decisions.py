"""The decision log: everything that was served, with what it was chosen from, and what came of it.

What a replay needs stands in it: the request as it came, so that any version of the features can be made of it, and
how likely each candidate was. A line is written before the state is, so an event may be there twice, when a process was
killed between the two: the last decision is the one that was answered, and a reward counts once.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tipbench.recommender.log.segmented_log import SegmentLog
from tipbench.recommender.policies.interface import Choice, Policy
from tipbench.recommender.records import Request, Reward

SCHEMA = 1


class DecisionLog:
    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self._log = SegmentLog(folder, clock)
        self._clock = clock

    def decided(self, policy: Policy[Any], request: Request, choice: Choice, n: int) -> None:
        self._append(
            "decision",
            policy=policy.name,
            feature_version=policy.features.version,
            parameters=policy.parameters,
            n=n,
            epsilon=choice.epsilon,
            chosen=request.candidates[choice.place].id,
            propensity=choice.propensity,
            scores=choice.scores.tolist(),
            propensities=choice.propensities.tolist(),
            request=request,
        )

    def rewarded(self, policy: str, reward: Reward, learned: bool) -> None:
        self._append("reward", policy=policy, learned=learned, **dict(reward))

    def reset(self, user_id: str, policies: list[str]) -> None:
        self._append("reset", user_id=user_id, policies=policies)

    def close(self) -> None:
        self._log.close()

    def _append(self, kind: str, **entry: Any) -> None:
        self._log.append({"schema": SCHEMA, "kind": kind, "at_ms": round(self._clock() * 1000), **entry})
