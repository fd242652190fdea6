"""`tipbench` with a shadow that never answers: ``python -m tests.integration.hanging_shadow recommend serve …``."""

import sys
import threading

from tipbench.bandit.features.v2 import V2
from tipbench.bandit.policies.egreedy import EGreedy
from tipbench.bandit.policies.interface import Choice, Generator
from tipbench.bandit.policies.ridge import Ridge
from tipbench.bandit.records import Request
from tipbench.bandit.shadows import SHADOWS, Shadow
from tipbench.cli.main import main


class Hanging(EGreedy):
    def choose(self, state: Ridge, request: Request, generator: Generator) -> Choice:
        threading.Event().wait()
        return super().choose(state, request, generator)


if __name__ == "__main__":
    assert isinstance(SHADOWS, dict)
    SHADOWS["egreedy-v2-shadow"] = Shadow(Hanging("hanging", V2))
    sys.argv[0] = "tipbench"
    main()
