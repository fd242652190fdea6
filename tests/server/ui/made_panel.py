"""The panel over made-up data: everything behind the pages is a small stand-in, and every text in it can be chosen."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.bench.compare.html.boards import Written, batch, board, failed, grid, report, texts
from tests.server.ui.made_decision import MadeDecisions
from tests.server.views.made_recommender import made_room
from tipbench.bench.compare.html.page import Report
from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.compare.messages import as_json
from tipbench.bench.compare.texts import Texts
from tipbench.bench.engines.catalog import EngineModels
from tipbench.bench.judge.calibration import Calibration
from tipbench.bench.judge.drift import Drift
from tipbench.bench.options import Options, make_options
from tipbench.bench.records import ModelInfo, StoredCell
from tipbench.core.errors import InvalidInput, NotFound, RunnerUnreachable
from tipbench.recommender.log.reward_statistics import RewardStatisticsReader
from tipbench.server.jobs.interface import Job, UnknownJob
from tipbench.server.jobs.progress import FailedCell, Progress
from tipbench.server.ui import (
    decisions,
    entrance,
    experiments,
    gates,
    jobs,
    judges,
    leaderboard,
    recommender,
    replays,
    run_form,
    runs,
    simulations,
    suites,
)
from tipbench.server.ui.pages import Parts
from tipbench.server.ui.static_files import PanelFiles
from tipbench.server.views.boards import (
    Boards,
    CandidateScores,
    Encoded,
    ExperimentLine,
    RunDetail,
    RunFilter,
    RunLevels,
    RunPage,
    state_of,
)
from tipbench.server.views.judging import JudgingDesk
from tipbench.server.views.rewards import Rewards, rewards_of
from tipbench.server.views.run_requests import Choices, Estimate, RunRequests
from tipbench.server.views.suites import Suites
from tipbench.web.tokens import Visitor

NOW_S = 1_777_300_000.0  # 2026-04-27
NOW_MS = round(NOW_S * 1000)
CSRF = "csrf-of-this-visitor"
ADMIN, JUDGE = Visitor("admin", "person"), Visitor("judge", "mira")


class MadeBoards(Boards):
    """Experiments by name, each with its cells; runs differ in nothing but their cells."""

    def __init__(
        self,
        cells: Mapping[str, Sequence[StoredCell]],
        text: str = "",
        raw: str | None = "[]",
        served: Path = Path("nowhere"),
    ) -> None:
        self.cells = cells
        self.text = text
        self.raw = raw
        self.problem = ""
        self.batches = [batch("counts", "", text or "mira")]
        self.served = served

    def experiments(self) -> list[ExperimentLine]:
        return [self._counted(name, cells) for name, cells in self.cells.items()]

    def _counted(self, name: str, cells: Sequence[StoredCell]) -> ExperimentLine:
        states = [state_of(cell) for cell in cells]
        counts = (len(states), states.count("judged"), states.count("pending"), states.count("failed"))
        return ExperimentLine(name, NOW_MS - 86_400_000, self.text or "tip", *counts, self.problem)

    def _cells(self, experiment: str) -> Sequence[StoredCell]:
        if experiment not in self.cells:
            raise InvalidInput(f"there is no experiment '{experiment}'")
        return self.cells[experiment]

    def leaderboard(self, experiment: str) -> Leaderboard:
        return board(self._cells(experiment), experiment)

    def leaderboard_json(self, experiment: str) -> Encoded:
        return Encoded(as_json(self.leaderboard(experiment)).encode(), "digest")

    def report(self, experiment: str) -> Report:
        return report(self.leaderboard(experiment), self._written, self.batches)

    def overview(self, experiment: str, render: Callable[[Report], str]) -> tuple[Report, str]:
        found = replace(self.report(experiment), texts=self.texts(experiment).overview())
        return found, render(found)

    def texts(self, experiment: str) -> Texts:
        return texts(self.leaderboard(experiment), self._written)

    @property
    def _written(self) -> Written:
        text = self.text or "Ring the dentist before nine, while the line is free."
        return Written(text, text, text)

    def rewards(self, experiment: str) -> Rewards:
        return rewards_of(self.leaderboard(experiment), RewardStatisticsReader(self.served).read())

    def runs(self, experiment: str, wanted: RunFilter, offset: int, limit: int) -> RunPage:
        named = (wanted.model, wanted.prompt, wanted.scenario, wanted.state)
        found = [
            cell
            for cell in self._cells(experiment)
            if all(
                want in (None, has)
                for want, has in zip(named, (cell.model, cell.prompt, cell.scenario, state_of(cell)), strict=True)
            )
        ]
        return RunPage(found[offset : offset + limit], len(found), offset, limit, self._levels(experiment))

    def _levels(self, experiment: str) -> RunLevels:
        cells = self._cells(experiment)
        by_name = [
            tuple(dict.fromkeys(names)) for names in zip(*((c.model, c.prompt, c.scenario) for c in cells), strict=True)
        ]
        return RunLevels(*by_name) if by_name else RunLevels((), (), ())

    def run(self, experiment: str, run_id: str) -> RunDetail:
        cell = next((one for one in self._cells(experiment) if one.run_id == run_id), None)
        if cell is None:
            raise InvalidInput(f"there is no run '{run_id}'")
        text = self.text or "Ring the dentist before nine, while the line is free."
        given = CandidateScores(
            0, self.text or "mira", True, {"relevance": 4, "tone": 5}, {"overlong": False}, 12.0, text
        )
        return RunDetail(
            cell=cell,
            experiment_id="7",
            prompt=f"You write tips.\n\n{text}",
            raw=None if cell.failure is not None else self.raw,
            candidates=[] if cell.failure is not None else [text, f"{text} Then rest."],
            scenario=f"Mara, nurse, morning.\n{text}",
            params={"model": cell.model, "temperature": self.text or "0.7", self.text or "seed": "12"},
            tags={},
            scores=[given, replace(given, judge=self.text or "lexical", counted=False)],
        )


class MadeRequests(RunRequests):
    """Any option that the table takes can be run."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.asked: list[str | None] = []

    def judges(self) -> list[str]:
        return ["lexical", "command"]

    def calibrations(self) -> list[Calibration]:
        return [Calibration(self.text or "claude-code-2.1", self.text or "tip-v1", "r", NOW_MS, Drift(40, 0, {}), {})]

    def validate_judge(self, experiment: str, judge: str) -> Options:
        if judge not in self.judges():
            raise InvalidInput(f"there is no judge '{judge}' that can be run")
        return make_options({"experiment": experiment, "judge": judge})

    def validate_publish(self, experiment: str) -> Options:
        if experiment == "nothing":
            raise NotFound("there is no experiment 'nothing' here")
        return make_options({"experiment": experiment})

    def choices(
        self, ollama_url: str | None = None, suite_name: str | None = None, with_models: bool = True
    ) -> Choices:
        self.asked.append(ollama_url)
        models = [
            ModelInfo(f"qwen2.5:0.5b{self.text}", "ollama", 494_000_000, "metadata", "d", 398_000_000, "Q4_K_M"),
            ModelInfo("gemma3:1b", "ollama", 1_000_000_000, "metadata", "d", 815_000_000, self.text or "Q4_K_M"),
            ModelInfo("llama3.1:8b", "ollama", 8_030_000_000, "metadata", "d", 4_900_000_000, "Q4_K_M"),
        ]
        return Choices(
            suite=suite_name or self.text or "tip",
            suites=[self.text or "tip", "commits"],
            prompts={
                "v1": self.text or "Plain instructions and a list of rules.",
                "v2-mentor": "A mentor who has seen it all.",
                f"v3{self.text}": "Three worked examples, then the task.",
            },
            scenarios=8,
            prefix="tip-bench-",
            warning=self.text,
            judges=("lexical", "model"),
            engines=(
                EngineModels("ollama", ollama_url or "http://localhost:11434", models),
                EngineModels(
                    "embedded", "in this process", [ModelInfo("embedded/smollm2:135m", "embedded", 134_515_008)]
                ),
                EngineModels("openai", "http://localhost:8080/v1", [], self.text or "nothing answers at this address"),
            ),
            defaults=Options().with_suite_defaults("tip-bench-", ["v1", "v2-mentor"], one_candidate=False),
        )

    def validate(self, given: Mapping[str, Any]) -> Options:
        return make_options(given, "the run")

    def estimate(self, given: Mapping[str, Any]) -> Estimate:
        self.validate(given)
        return Estimate(48, 12, 36, 250, measured=True)


@dataclass
class MadeRunner:
    """Jobs that are what they are told to be."""

    is_local = True
    found: dict[str, Job] = field(default_factory=dict)
    told: dict[str, Progress] = field(default_factory=dict)
    logged: str = ""
    started: list[tuple[Options, bool, bool]] = field(default_factory=list)
    away: str = ""  # why it can't be asked

    def start(self, options: Options, retry_failed: bool = False, fresh: bool = False) -> Job:
        self.started.append((options, retry_failed, fresh))
        job = Job(f"job{len(self.found)}", "queued", options.model_dump(), NOW_MS)
        self.found[job.id] = job
        return job

    def judge(self, options: Options) -> Job:
        config = {"experiment": options.experiment, "judge": options.judge, "action": "judge"}
        self.found["judging"] = Job("judging", "queued", config, NOW_MS)
        return self.found["judging"]

    def publish(self, options: Options) -> Job:
        config = {"experiment": options.experiment, "action": "publish"}
        self.found["publishing"] = Job("publishing", "queued", config, NOW_MS)
        return self.found["publishing"]

    def jobs(self, limit: int = 100, before_ms: int | None = None) -> list[Job]:
        if self.away:
            raise RunnerUnreachable(self.away)
        newest = sorted(self.found.values(), key=lambda job: -job.created_ms)
        return [job for job in newest if before_ms is None or job.created_ms < before_ms][:limit]

    def job(self, job_id: str) -> Job:
        if job_id not in self.found:
            raise UnknownJob(f"there is no job '{job_id}'")
        return self.found[job_id]

    def progress(self, job_id: str) -> Progress:
        return self.told.get(job_id, Progress())

    def log(self, job_id: str, last_bytes: int = 20_000) -> str:
        return self.logged[-last_bytes:]

    def cancel(self, job_id: str) -> Job:
        self.found[job_id] = replace(self.job(job_id), cancelling=True)
        return self.found[job_id]

    def close(self) -> None:
        """Nothing to stop."""


@dataclass(frozen=True)
class MadeJudge:
    name: str
    created_ms: int = NOW_MS
    last_seen_ms: int | None = None


class MadeTokens:
    def __init__(self, *names: str) -> None:
        self.names = list(names)

    def judges(self) -> list[MadeJudge]:
        return [MadeJudge(name) for name in self.names]

    def invite(self, name: str) -> str:
        if not name or name in self.names:
            raise InvalidInput(f"'{name}' is no name for a judge; take another")
        self.names.append(name)
        return f"token-of-{len(self.names)}"

    def revoke(self, name: str) -> None:
        if name not in self.names:
            raise InvalidInput(f"nobody is called '{name}'")
        self.names.remove(name)


def a_job(job_id: str = "j1", state: Any = "running", text: str = "", **more: Any) -> Job:
    config = Options(experiment="tip-bench-2026-04-27").model_dump()
    config |= {"experiment": text, text: text} if text else {}
    started = None if state == "queued" else NOW_MS - 90_000
    ended = NOW_MS if state in ("finished", "failed", "cancelled") else None
    return Job(job_id, state, config, NOW_MS - 100_000, started, ended, message=text, **more)


def a_progress(text: str = "", **more: Any) -> Progress:
    failures = (FailedCell(text or "gemma3:1b × v1 × nurse-morning", text or "the engine took longer than 600 s"),)
    told: dict[str, Any] = {"phase": "collect", "cells": 36, "stored": 12, "done": 20, "failed": 1, "eta_s": 130.0}
    told |= {"message": text, "current": text or "gemma3:1b × v2-mentor × nurse-morning", "failures": failures, **more}
    return Progress(**told)


def cells_of(text: str = "") -> list[StoredCell]:
    """A small grid, most of it judged, one cell failed; `text` is in every name."""
    found = grid([f"qwen2.5:0.5b{text}", f"gemma3:1b{text}"], [f"v1{text}", f"v2-mentor{text}"])
    found = [
        replace(one, scenario=f"{one.scenario}{text}", factors={f"slot{text}": one.factors["time_slot"]})
        for one in found
    ]
    pending = [replace(one, pending=True, metrics={}, judged_rubric=None, judges=()) for one in found[-2:]]
    return [*found[:-3], replace(failed(found[-3]), failure=text or "timed out"), *pending]


def parts_of(**given: Any) -> Parts:
    made: dict[str, Any] = {
        "boards": MadeBoards({}),
        "requests": MadeRequests(),
        "runner": MadeRunner(),
        "desk": JudgingDesk.__new__(JudgingDesk),  # no page here uses it
        "suites": Suites.__new__(Suites),
        "decisions": MadeDecisions(requests=given.get("requests") or MadeRequests()),
        "tokens": MadeTokens(),
        "recommender": given.get("recommender") or made_room(),
        "csrf": lambda request: CSRF,
        "mlflow_run": lambda experiment_id, run_id: f"/mlflow/#/experiments/{experiment_id}/runs/{run_id}",
        "address": "sqlite:////data/mlflow.db",
        "clock": lambda: NOW_S,
    }
    return Parts(**{**made, **given})


class Arrived:
    """In place of the gate: everybody is this visitor."""

    def __init__(self, app: ASGIApp, visitor: Visitor | None) -> None:
        self.app = app
        self.visitor = visitor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {}).update(visitor=self.visitor, csrf=CSRF if self.visitor else "")
        await self.app(scope, receive, send)


def app_of(parts: Parts, visitor: Visitor | None = ADMIN) -> FastAPI:
    app = FastAPI()
    bench = (entrance, experiments, decisions, leaderboard, runs, run_form, jobs, suites, judges)
    for module in (*bench, recommender, simulations, gates, replays):
        app.include_router(module.router(parts))
    app.mount("/static", PanelFiles())
    app.add_middleware(Arrived, visitor=visitor)
    return app
