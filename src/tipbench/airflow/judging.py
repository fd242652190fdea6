"""export_for_judge, judge and the wait for a person: MLflow carries the batch from host to host."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tipbench.airflow.free_memory import wait_until_vacant
from tipbench.airflow.place import shared_workplace
from tipbench.airflow.planning import planned_request
from tipbench.bench.engines.catalog import engine_name, open_engines
from tipbench.bench.judge.apply import AS_IT_IS, Applied, apply_file
from tipbench.bench.judge.export import export_batch
from tipbench.bench.judge.gold import gold_items
from tipbench.bench.judge.judges.catalog import PERSON, JudgeParts, judge_named, person
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.judges.open_judge import opened_judge
from tipbench.bench.judge.locks import judging_alone
from tipbench.bench.judge.pending import pending_runs, waiting_runs
from tipbench.bench.judge.sample import EVERYTHING, WHAT_FITS
from tipbench.bench.judge.verify import read_judge_data
from tipbench.bench.options import Options
from tipbench.bench.pipeline import score_batch
from tipbench.bench.records import GoldItem
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.suites.suite import Suite
from tipbench.bench.tracking.batches import BATCH, batch_file, find_batch, has_file, is_applied, read_batch
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import KIND, stored_runs
from tipbench.bench.tracking.store import RunStore
from tipbench.bench.workplace import Workplace
from tipbench.core.errors import InvalidInput, JudgeLater, NothingPending, TrackingUnreachable
from tipbench.core.settings import Settings
from tipbench.core.untrusted import json_text

_GIVEN = "judged.json"  # what a judge gave that could not be applied
Say = Callable[[str], None]


def export(planned: Mapping[str, Any], settings: Settings, say: Say) -> dict[str, Any]:
    """Puts what waits for the judge into a batch, file and all, in MLflow; says where it is.

    A batch that was made before and holds just what waits is gone on with: somebody may be scoring it.
    """
    options, suite = planned_request(planned)
    with shared_workplace(options.mlflow_url, settings) as work:
        experiment = work.store.find_experiment(options.experiment)
        if experiment is None:
            raise InvalidInput(f"no cell of experiment '{options.experiment}' was stored, so there is nothing to judge")
        at_host = options.model_copy(update={"ollama_url": planned["judge_url"]})
        judge = _identity(at_host, suite.rubric, work, settings, say)
        runs = stored_runs(work.store, experiment)
        run = None
        if waiting_runs(runs, judge.name if options.judge else None, suite.rubric):
            run = _open_batch(work.store, experiment, suite.rubric, judge, runs)
            run = run or _new_batch(work, experiment, suite, options, judge, settings, say)
        if run is None:
            say(f"Nothing waits for judge '{judge.name}'.")
            return {"experiment": options.experiment, "judge": judge.name, "batch": None, "items": 0}
        items = len(batch_file(work.store, run)["items"])
        say(f"Batch {run.tags['tipbench.batch']} with {items} items waits for judge '{judge.name}'.")
        return {
            "experiment": options.experiment,
            "judge": judge.name,
            "batch": run.tags["tipbench.batch"],
            "items": items,
            "run_id": run.run_id,
            "uri": f"runs:/{run.run_id}/judge.json",
            "link": f"{work.store.address}/#/experiments/{experiment.id}/runs/{run.run_id}/artifacts",
        }


def run_judge(planned: Mapping[str, Any], exported: Mapping[str, Any], settings: Settings, say: Say) -> dict[str, Any]:
    """The configured judge scores the batch; one that answers later is waited for by the next task.

    A model judges on the host whose pool the task is in.
    """
    options, suite = planned_request(planned)
    options = options.model_copy(update={"ollama_url": planned["judge_url"]})
    with shared_workplace(options.mlflow_url, settings) as work:
        experiment, run = _batch(work.store, exported)
        if is_applied(run):
            return {"in_short": f"batch {exported['batch']} was scored before"}
        opened = opened_judge(options.judge or "", suite.rubric, options, work.store, settings, work.clock, say)
        try:
            _make_room(options, settings, say)
            with opened as judge:
                scored = score_batch(judge, batch_file(work.store, run))
        except JudgeLater as later:
            return {"in_short": f"batch {later.batch} waits for the {options.judge} judge"}
        try:
            applied = _apply(work, experiment, suite, scored, settings, say)
        except InvalidInput as error:  # hours of a judge's work are not lost to an item that is missing
            work.store.extend_run(run, {}, new_texts={_GIVEN: json_text(scored)}, at_ms=work.now_ms)
            raise InvalidInput(  # and no other try: it would take hours again
                f"{error}\nWhat the judge gave is kept in MLflow, {_GIVEN} of run {run.run_id}: mend it and --apply it"
            ) from error
    return {"in_short": applied.in_short}


def _make_room(options: Options, settings: Settings, say: Say) -> None:
    """For a judge that is a model on an Ollama."""
    model = settings.get("TIPBENCH_JUDGE_MODEL")
    if options.judge == "model" and engine_name(model) == "ollama":
        with open_engines(options, settings) as engines:
            wait_until_vacant(engines.of(model), model, say)


def apply_pasted(
    planned: Mapping[str, Any], exported: Mapping[str, Any], text: str, settings: Settings, say: Say
) -> dict[str, Any]:
    """Scores that somebody pasted as the filled-in file, checked like any other."""
    options, suite = planned_request(planned)
    scored = read_judge_data(text.encode(errors="replace"), "what was pasted")
    if scored.get("batch") != exported["batch"]:
        raise InvalidInput(f"what was pasted is not batch {exported['batch']}; paste that batch's file, filled in")
    with shared_workplace(options.mlflow_url, settings) as work:
        experiment, _ = _batch(work.store, exported)
        return {"in_short": _apply(work, experiment, suite, scored, settings, say).in_short}


def reason_to_go_on(planned: Mapping[str, Any], exported: Mapping[str, Any], settings: Settings, say: Say) -> str:
    """Why nobody waits any more; empty as long as somebody does. An MLflow that is away is looked at again later."""
    if not exported["batch"]:
        return f"nothing waits for judge '{exported['judge']}'"
    try:
        there = is_scored(planned, exported, settings)
    except TrackingUnreachable as error:
        say(f"Whether the scores are there can't be told for now: {error}")
        return ""
    if there:
        return f"the scores of batch {exported['batch']} are there"
    say(f"MLflow has no scores for batch {exported['batch']} yet.")
    return ""


def is_scored(planned: Mapping[str, Any], exported: Mapping[str, Any], settings: Settings) -> bool:
    """Whether the batch has its scores, or its cells have got them in another way."""
    options, suite = planned_request(planned)
    with shared_workplace(options.mlflow_url, settings) as work:
        experiment, run = _batch(work.store, exported)
        if is_applied(run):
            return True
        judge = exported["judge"] if options.judge else None
        waiting = {one.run_id for one in waiting_runs(stored_runs(work.store, experiment), judge, suite.rubric)}
        return not waiting & {slot.run_id for slot in read_batch(work.store, run).slots}


def _identity(options: Options, rubric: Rubric, work: Workplace, settings: Settings, say: Say) -> JudgeName:
    if not options.judge:
        return person(PERSON)
    with open_engines(options, settings) as engines:
        parts = JudgeParts(rubric, settings, engines.of, options.seed, work.clock, say)
        return judge_named(options.judge, parts).identity


def _open_batch(
    store: RunStore, experiment: Experiment, rubric: Rubric, judge: JudgeName, runs: Sequence[StoredRun]
) -> StoredRun | None:
    """The newest batch for this judge that nobody has scored, where it holds all that waits of these runs."""
    waiting = {run.run_id for run in pending_runs(runs, judge.name, rubric)}
    wanted = {KIND: BATCH, "tipbench.judge": judge.name, "tipbench.applied": "false"}
    for run in reversed(store.runs(experiment, {**wanted, "tipbench.rubric_digest": rubric.digest})):
        if has_file(run) and waiting == {slot.run_id for slot in read_batch(store, run).slots if slot.run_id}:
            return run
    return None


def _new_batch(
    work: Workplace,
    experiment: Experiment,
    suite: Suite,
    options: Options,
    judge: JudgeName,
    settings: Settings,
    say: Say,
) -> StoredRun | None:
    gold = _gold(experiment, suite, settings, say)
    extent = EVERYTHING if options.judge else WHAT_FITS
    try:
        made = export_batch(
            work.store,
            experiment,
            suite.rubric,
            judge,
            options.seed,
            work.new_id,
            work.now_ms,
            extent,
            gold,
            keep_file=True,
        )
    except NothingPending:
        return None
    return find_batch(work.store, experiment, made.file["batch"])


def _batch(store: RunStore, exported: Mapping[str, Any]) -> tuple[Experiment, StoredRun]:
    experiment = store.experiment(exported["experiment"])
    return experiment, find_batch(store, experiment, exported["batch"])


def _gold(experiment: Experiment, suite: Suite, settings: Settings, say: Say) -> Sequence[GoldItem]:
    return gold_items(experiment, suite.rubric, str(suite.folder), settings, say)


def _apply(
    work: Workplace, experiment: Experiment, suite: Suite, scored: dict[str, Any], settings: Settings, say: Say
) -> Applied:
    with judging_alone(work.store.address, experiment.name, settings, say):
        gold = _gold(experiment, suite, settings, say)
        return apply_file(work.store, experiment, scored, work.now_ms, AS_IT_IS, gold)
