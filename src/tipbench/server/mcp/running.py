"""The tools that make the bench work: collections, their jobs, and decisions in rounds."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tipbench.bench.options import Options
from tipbench.core.errors import InvalidInput, NotFound
from tipbench.core.text import counted
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.progress import Progress
from tipbench.server.mcp.results import rounded
from tipbench.server.mcp.tools import SEEN_NOW, Answer, SeenResults, Tool
from tipbench.server.views.bench import BenchViews
from tipbench.server.views.decisions import DecisionRules, DecisionView

_LOG_BYTES = 4_000
_JOBS = 10


class StartCollection(BaseModel):
    """Options of the run stand beside these keys, and are validated like those of a run."""

    model_config = ConfigDict(extra="allow")

    retry_failed: bool = Field(False, description="Try cells that failed before again.")
    fresh: bool = Field(False, description="Start over: stored cells of this grid no longer count.")


class JobAsked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    id: str | None = Field(None, max_length=64, description="The job; without it, the last ones are listed.")
    log: bool = Field(False, description="Include the end of its log, which may show results.")


class Decide(BaseModel):
    """Options of the decision stand beside these keys, and are validated like those of a run."""

    model_config = ConfigDict(extra="allow")

    action: Literal["look", "start", "continue", "stop"] = "look"
    experiment: str | None = Field(None, min_length=1, max_length=200, description="Required but for start.")
    results: bool = Field(False, description="look: show the rows of a decision that is still open.")
    claim: Literal["pool", "new"] | None = Field(
        None, description="Whose texts are the best: of these scenarios, or of new ones."
    )
    good_enough: float | None = Field(None, ge=0, allow_inf_nan=False, description="Loss to stop at; 0: proof.")
    budget: int | None = Field(None, ge=1, description="Items that judges may be given.")


@cache
def _with_options(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a model's keys and of a run's options."""
    own = model.model_json_schema()["properties"]
    options = {name: one for name, one in Options.model_json_schema()["properties"].items() if name != "mlflow_url"}
    return {"type": "object", "properties": {**options, **own}, "additionalProperties": False}


@dataclass(frozen=True)
class RunningTools:
    """The tools over one store; what shows results marks the experiment in `seen`."""

    views: BenchViews
    seen: SeenResults

    def tools(self) -> list[Tool]:
        return [
            Tool(
                "start_collection",
                "Start a collection over models × prompts × scenarios as a job. What is stored already is not "
                "generated again, so the same call resumes a job that failed.",
                StartCollection,
                self.start_collection,
                reads_only=False,
                schema=_with_options(StartCollection),
            ),
            Tool(
                "job",
                "See how a job is doing: state, progress, time left. With log the end of its output, after which you "
                "get no items of its experiment to judge.",
                JobAsked,
                self.job,
            ),
            Tool(
                "decide",
                "Decide between models × prompts with the fewest judgements, in rounds: start one, look where it "
                "stands, continue it, or stop it. An open decision is shown without its rows, so that you can go on "
                "judging it; results shows them, after which you get no items of it.",
                Decide,
                self.decide,
                reads_only=False,
                schema=_with_options(Decide),
            ),
        ]

    def start_collection(self, asked: StartCollection) -> Answer:
        options = self.views.requests.validate(asked.model_extra or {})
        job = self.views.runner.start(options, asked.retry_failed, asked.fresh)
        return {"says": f"Job {job.id} is {job.state}; job with this id says how it is doing.", "job": _job(job)}

    def job(self, asked: JobAsked) -> Answer:
        runner = self.views.runner
        if asked.id is None:
            jobs = runner.jobs(_JOBS)
            says = f"The last {counted(len(jobs), 'job')}." if jobs else "There was no job yet."
            return {"says": says, "jobs": [_job(one) for one in jobs]}
        found = runner.job(asked.id)
        progress = runner.progress(asked.id)
        answer = {"says": _job_sentence(found, progress), "job": _job(found), "progress": _progress(progress)}
        if asked.log:
            self.seen.add(found.experiment)
            answer |= {"log": runner.log(asked.id, _LOG_BYTES), "note": SEEN_NOW}
        return answer

    def decide(self, asked: Decide) -> Answer:
        rules = DecisionRules(asked.claim, asked.good_enough, asked.budget)
        decisions = self.views.decisions
        if asked.action == "start":
            named = {"experiment": asked.experiment} if asked.experiment else {}
            return self._decision(decisions.start({**(asked.model_extra or {}), **named}, rules), asked.results)
        if asked.model_extra:
            unknown = ", ".join(map(repr, asked.model_extra))
            raise InvalidInput(f"a decision that was started keeps its options; leave {unknown} out")
        if asked.experiment is None:
            raise InvalidInput(f"decide with {asked.action} needs the decision's experiment; experiments lists them")
        found = self._found(asked.experiment)
        if asked.action == "continue":
            found = decisions.go_on(asked.experiment, rules)
        if asked.action == "stop":
            found = decisions.stop(asked.experiment, "an agent")
        return self._decision(found, asked.results)

    def _found(self, experiment: str) -> DecisionView:
        try:
            return self.views.decisions.get(experiment)
        except NotFound:
            raise NotFound(
                f"there is no decision '{experiment}'; experiments lists them, and decide with start begins one"
            ) from None

    def _decision(self, found: DecisionView, results: bool) -> Answer:
        """Return where a decision stands. While it is open, only `results` names its rows."""
        state = found.as_data()
        counts = {name: state[name] for name in ("experiment", "judgements", "likely_left", "spent", "budget", "job")}
        if found.round.is_open and not results:
            rows_in = sum(not row.is_out for row in found.rows)
            left = f", about {found_left} are likely to be left" if (found_left := state["likely_left"]) else ""
            says = (
                f"Not decided yet: {rows_in} of {len(found.rows)} rows are in after "
                f"{counted(state['judgements'], 'judgement')}{left}. next_items gives judges the next items."
            )
            return {"says": f"{says} {found.problem}".strip(), "decision": counts}
        self.seen.add(found.experiment)
        rows = [{"row": row["row"], "state": row["state"], "mean": rounded(row["mean"])} for row in state["rows"]]
        return {
            "says": f"{state['says']} Next: {state['next']}",
            "decision": {**counts, "rows": rows},
            "note": SEEN_NOW,
        }


def _job(job: Job) -> dict[str, Any]:
    shown = ("models", "prompts", "suite", "n_tips", "n_scenarios", "judge")
    return {
        "id": job.id,
        "state": job.state,
        "experiment": job.experiment,
        "message": job.message,
        "config": {name: job.config[name] for name in shown if job.config.get(name) is not None},
    }


def _job_sentence(job: Job, progress: Progress) -> str:
    done = (
        f"{progress.done} of {progress.cells} cells are generated, {progress.failed} failed" if progress.cells else ""
    )
    left = f"about {progress.eta_s:.0f} s are left" if progress.eta_s else ""
    waiting = f"{counted(progress.waiting_items, 'item')} wait for a judge" if progress.waiting_items else ""
    parts = [part for part in (f"{job.state}: {progress.phase}", done, left, waiting, job.message) if part]
    return "; ".join(parts) + "."


def _progress(progress: Progress) -> Mapping[str, Any]:
    names = ("phase", "cells", "stored", "done", "failed", "empty", "eta_s", "waiting_items")
    failures = [f"{one.cell}: {one.reason}" for one in progress.failures[:5]]
    return {**{name: getattr(progress, name) for name in names}, "failures": failures}
