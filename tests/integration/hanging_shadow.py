"""`tipbench` with a shadow that never answers: ``python -m tests.integration.hanging_shadow recommend serve …``."""

import sys
import threading

from tipbench.cli.main import main
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.policies.egreedy import EGreedy
from tipbench.recommender.policies.interface import Choice, Generator
from tipbench.recommender.policies.ridge import Ridge
from tipbench.recommender.records import Request
from tipbench.recommender.shadows.runner import SHADOWS, Shadow


class Hanging(EGreedy):
    def choose(self, state: Ridge, request: Request, generator: Generator, at_ms: int) -> Choice:
        threading.Event().wait()
        return super().choose(state, request, generator, at_ms)


if __name__ == "__main__":
    assert isinstance(SHADOWS, dict)
    SHADOWS["egreedy-v2-shadow"] = Shadow(Hanging("hanging", V2))
    sys.argv[0] = "tipbench"
    main()
