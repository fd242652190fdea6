"""The tasks `export_for_judge`, `judge` and `wait_for_judge`. Batches are passed between hosts through MLflow."""

from collections.abc import Mapping
from typing import Any

from tipbench.airflow.host_assignment import wait_for_free_memory
from tipbench.airflow.planning import Say, TaskLog, planned_request, shared_bench
from tipbench.bench.bench import Bench
from tipbench.bench.engines.catalog import open_engines
from tipbench.bench.engines.interface import loads_on_a_server
from tipbench.bench.judge.export import pending_runs, waiting_runs
from tipbench.bench.judge.judges.catalog import PERSON, JudgeParts, judge_model, make_judge, person
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.sample import EVERYTHING
from tipbench.bench.judge.verify import read_judge_data
from tipbench.bench.tracking.batches import BATCH, batch_file, find_batch, has_file, is_applied, read_batch
from tipbench.bench.tracking.interface import StoredRun
from tipbench.bench.tracking.runs import KIND, stored_runs
from tipbench.core.errors import InvalidInput, JudgeLater, NothingPending, ScoresRefused, TrackingUnreachable
from tipbench.core.settings import Settings


def export(planned: Mapping[str, Any], settings: Settings, say: Say) -> dict[str, Any]:
    """Export what is waiting for the judge as a batch, with its file in MLflow; return where it is.

    An earlier unscored batch with exactly these items is reused, because somebody may be scoring it already.
    """
    options, _ = planned_request(planned)
    with _bench(planned, settings, say) as bench:
        if bench.store.find_experiment(options.experiment) is None:
            raise InvalidInput(f"no cell of experiment '{options.experiment}' was stored, so there is nothing to judge")
        judge = _identity(bench)
        run = _open_batch(bench, judge) or _new_batch(bench, judge) if _waiting_run_ids(bench, judge.name) else None
        if run is None:
            say(f"Nothing waits for judge '{judge.name}'.")
            return {"experiment": options.experiment, "judge": judge.name, "batch": None, "items": 0}
        items = len(batch_file(bench.store, run)["items"])
        say(f"Batch {run.tags['tipbench.batch']} with {items} items waits for judge '{judge.name}'.")
        return {
            "experiment": options.experiment,
            "judge": judge.name,
            "batch": run.tags["tipbench.batch"],
            "items": items,
            "run_id": run.run_id,
            "uri": f"runs:/{run.run_id}/judge.json",
            "link": f"{bench.store.address}/#/experiments/{bench.experiment.id}/runs/{run.run_id}/artifacts",
        }


def run_judge(planned: Mapping[str, Any], exported: Mapping[str, Any], settings: Settings, say: Say) -> dict[str, Any]:
    """Let the configured judge score the batch. If it answers later, the next task waits for it.

    A judge that is a model runs on the host whose pool the task uses.
    """
    with _bench(planned, settings, say) as bench:
        run = find_batch(bench.store, bench.experiment, exported["batch"])
        if is_applied(run):
            return {"in_short": f"batch {exported['batch']} was scored before"}
        judge = bench.options.judge or ""
        _wait_for_memory(bench, say)
        try:
            applied = bench.judge_batch(judge, run)
        except JudgeLater as later:
            return {"in_short": f"batch {later.batch} was sent to the {judge} judge"}
        except ScoresRefused as error:  # not retried: that would take hours again
            raise InvalidInput(str(error)) from error
    return {"in_short": applied.in_short}


def _wait_for_memory(bench: Bench, say: Say) -> None:
    """If the judge is a model on a server, wait until no other model is in that server's memory."""
    settings = bench.context.settings
    model = judge_model(bench.options.judge, settings)
    if model:
        with open_engines(bench.options, settings) as engines:
            if loads_on_a_server(engines.of(model)):
                wait_for_free_memory(engines.of(model), model, say)


def apply_pasted(
    planned: Mapping[str, Any], exported: Mapping[str, Any], text: str, settings: Settings, say: Say
) -> dict[str, Any]:
    """Apply scores that were pasted as a filled-in judge file, with the usual checks; raise InvalidInput."""
    scored = read_judge_data(text.encode(errors="replace"), "what was pasted")
    if scored.get("batch") != exported["batch"]:
        raise InvalidInput(f"the pasted text is not batch {exported['batch']}; paste that batch's file, filled in")
    with _bench(planned, settings, say) as bench:
        return {"in_short": bench.apply(scored).in_short}


def reason_to_continue(planned: Mapping[str, Any], exported: Mapping[str, Any], settings: Settings, say: Say) -> str:
    """Return why the run need not wait any longer; empty while it must, also if MLflow is unreachable for now."""
    if not exported["batch"]:
        return f"nothing was left for judge '{exported['judge']}'"
    try:
        has_scores = is_scored(planned, exported, settings)
    except TrackingUnreachable as error:
        say(f"Can't check for the scores right now: {error}")
        return ""
    if has_scores:
        return f"the scores of batch {exported['batch']} have arrived"
    say(f"MLflow has no scores for batch {exported['batch']} yet.")
    return ""


def is_scored(planned: Mapping[str, Any], exported: Mapping[str, Any], settings: Settings) -> bool:
    """Return whether the batch was scored, or its cells have been scored in another way."""
    with _bench(planned, settings, lambda _text: None) as bench:
        run = find_batch(bench.store, bench.experiment, exported["batch"])
        if is_applied(run):
            return True
        return not _waiting_run_ids(bench, exported["judge"]) & {
            slot.run_id for slot in read_batch(bench.store, run).slots
        }


def _bench(planned: Mapping[str, Any], settings: Settings, say: Say) -> Bench:
    """Open a bench with the judge task's host and the suite, hence the rubric, that the run was planned with."""
    options, suite = planned_request(planned)
    changed = {"ollama_url": planned["judge_url"], "suite": str(suite.folder)}
    return shared_bench(options, settings, TaskLog(say), **changed)


def _identity(bench: Bench) -> JudgeName:
    options, settings = bench.options, bench.context.settings
    if not options.judge:
        return person(PERSON)
    with open_engines(options, settings) as engines:
        observer, clock = bench.context.observer, bench.context.clock
        parts = JudgeParts(bench.rubric, settings, engines.of, options.seed, clock, observer.note)
        return make_judge(options.judge, parts).identity


def _waiting_run_ids(bench: Bench, judge: str) -> set[str]:
    """Return the runs that wait for this judge, or without a configured judge, for any that counts."""
    runs = stored_runs(bench.store, bench.experiment)
    return {run.run_id for run in waiting_runs(runs, judge if bench.options.judge else None, bench.rubric)}


def _open_batch(bench: Bench, judge: JudgeName) -> StoredRun | None:
    """Return the newest unscored batch for this judge that holds exactly what is waiting, or None."""
    runs = stored_runs(bench.store, bench.experiment)
    waiting = {run.run_id for run in pending_runs(runs, judge.name, bench.rubric)}
    wanted = {KIND: BATCH, "tipbench.judge": judge.name, "tipbench.applied": "false"}
    for run in reversed(bench.store.runs(bench.experiment, {**wanted, "tipbench.rubric_digest": bench.rubric.digest})):
        if has_file(run) and waiting == {slot.run_id for slot in read_batch(bench.store, run).slots if slot.run_id}:
            return run
    return None


def _new_batch(bench: Bench, judge: JudgeName) -> StoredRun | None:
    try:
        made = bench.new_batch(judge, EVERYTHING if bench.options.judge else None, "page")
    except NothingPending:
        return None
    return find_batch(bench.store, bench.experiment, made.file["batch"])
