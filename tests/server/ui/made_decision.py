"""Made-up decisions for pages: the rounds come from real bets on a small matrix of scores."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tipbench.bench.decide.rounds import OpenBatch, Round
from tipbench.bench.decide.verdict import Verdict, rules_for
from tipbench.bench.records import Batch, Slot
from tipbench.bench.tracking.decisions import DecisionPlan
from tipbench.bench.tracking.interface import StoredRun
from tipbench.core.errors import InvalidInput, NotFound
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.progress import Progress
from tipbench.server.views.decisions import DecisionRules, Decisions, DecisionView, decision_rows
from tipbench.server.views.run_requests import Choices, RunRequests
from tipbench.statistics.betting import decide, wealth_for

SCALE = (2.0, 17.0)


def a_round(text: str = "", items: int = 8, stopped: str = "", judge: str = "", **more: Any) -> Round:
    """Three rows on a pool of 40 scenarios, of which so many are judged."""
    rows = tuple((f"{model}{text}", f"v1{text}") for model in ("qwen2.5:0.5b", "gemma3:1b", "smollm2"))
    random = np.random.default_rng(1)
    scores = np.full((40, 3), np.nan)
    scores[:items] = np.clip(random.normal([0.85, 0.78, 0.15], 0.08, (items, 3)), 0, 1)
    restarts = more.pop("restarts", 0)
    rules = rules_for("pool", 40, more.pop("good_enough", 0.0), SCALE, wealth_for(restarts))
    names = tuple(f"{model} × {prompt}" for model, prompt in rows)
    plan = DecisionPlan("d", 0, "s", rows, tuple(f"s{number}" for number in range(40)), "pool", 0.15, "r")
    run = StoredRun("r1", "FINISHED", 0, "", {"tipbench.budget": "200"}, {}, {}, {}, "e1")
    slots = tuple(Slot(f"a{number}", "c", number, "", "", {}) for number in range(9))
    held = [OpenBatch(run, Batch("b1", judge, False, 0, "r", 0, "s", slots))] if judge else []
    return Round(
        run, plan, Verdict(names, rules, SCALE, decide(scores, rules), restarts, stopped=stopped), {}, {}, [], held
    )


class MadeDecisions(Decisions):
    """One decision; remembers what was asked of it."""

    def __init__(
        self,
        name: str = "tip-pool-made",
        found: Round | None = None,
        job: Job | None = None,
        progress: Progress | None = None,
        requests: RunRequests | None = None,
    ) -> None:
        self.name, self.found, self.job, self.progress = name, found or a_round(), job, progress
        self.requests = requests
        self.asked: list[tuple[str, Any]] = []

    def choices(self) -> Choices:
        assert self.requests
        return self.requests.choices()

    def start(self, given: Mapping[str, Any], rules: DecisionRules) -> DecisionView:
        self.asked.append(("start", (dict(given), rules)))
        if not given["models"]:
            raise InvalidInput("models: is empty; give at least one")
        return self.get(self.name)

    def get(self, name: str) -> DecisionView:
        if name != self.name:
            raise NotFound(f"experiment '{name}' holds no decision")
        return DecisionView(name, self.found, decision_rows(self.found), self.job, self.progress)

    def stop(self, name: str, by: str) -> DecisionView:
        self.asked.append(("stop", (name, by)))
        return self.get(name)

    def go_on(self, name: str, rules: DecisionRules) -> DecisionView:
        self.asked.append(("go on", (name, rules)))
        if rules.budget is not None and rules.budget < 10:
            raise InvalidInput("budget: is too small")
        return self.get(name)


def stopped_round(text: str = "") -> Round:
    found = a_round(text)
    return replace(found, verdict=replace(found.verdict, stopped="lena stopped it"))
