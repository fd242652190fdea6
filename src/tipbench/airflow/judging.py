"""export_for_judge, judge and the wait for a person: MLflow carries the batch from host to host."""

from collections.abc import Mapping
from typing import Any

from tipbench.airflow.host_assignment import wait_until_vacant
from tipbench.airflow.planning import Say, TaskLog, planned_request, shared_bench
from tipbench.bench.bench import Bench
from tipbench.bench.engines.catalog import open_engines
from tipbench.bench.engines.interface import loads_on_a_server
from tipbench.bench.judge.export import pending_runs, waiting_runs
from tipbench.bench.judge.judges.catalog import PERSON, JudgeParts, judge_model, judge_named, person
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.sample import EVERYTHING, WHAT_FITS
from tipbench.bench.judge.verify import read_judge_data
from tipbench.bench.tracking.batches import BATCH, batch_file, find_batch, has_file, is_applied, read_batch
from tipbench.bench.tracking.interface import StoredRun
from tipbench.bench.tracking.runs import KIND, stored_runs
from tipbench.core.errors import InvalidInput, JudgeLater, NothingPending, ScoresRefused, TrackingUnreachable
from tipbench.core.settings import Settings


def export(planned: Mapping[str, Any], settings: Settings, say: Say) -> dict[str, Any]:
    """Put what waits for the judge into a batch, file and all, in MLflow; returns where it is.

    A batch that was made before and holds just what waits is gone on with: somebody may be scoring it.
    """
    options, _ = planned_request(planned)
    with _bench(planned, settings, say) as bench:
        if bench.store.find_experiment(options.experiment) is None:
            raise InvalidInput(f"no cell of experiment '{options.experiment}' was stored, so there is nothing to judge")
        judge = _identity(bench)
        run = _open_batch(bench, judge) or _new_batch(bench, judge) if _waits(bench, judge.name) else None
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
    """The configured judge scores the batch; one that answers later is waited for by the next task.

    A model judges on the host whose pool the task is in.
    """
    with _bench(planned, settings, say) as bench:
        run = find_batch(bench.store, bench.experiment, exported["batch"])
        if is_applied(run):
            return {"in_short": f"batch {exported['batch']} was scored before"}
        judge = bench.options.judge or ""
        _make_room(bench, say)
        try:
            applied = bench.judge_batch(judge, run)
        except JudgeLater as later:
            return {"in_short": f"batch {later.batch} waits for the {judge} judge"}
        except ScoresRefused as error:  # no other try: it would take hours again
            raise InvalidInput(str(error)) from error
    return {"in_short": applied.in_short}


def _make_room(bench: Bench, say: Say) -> None:
    """Wait until no other model is in the memory of the server that a judging model is loaded on."""
    settings = bench.context.settings
    model = judge_model(bench.options.judge, settings)
    if model:
        with open_engines(bench.options, settings) as engines:
            if loads_on_a_server(engines.of(model)):
                wait_until_vacant(engines.of(model), model, say)


def apply_pasted(
    planned: Mapping[str, Any], exported: Mapping[str, Any], text: str, settings: Settings, say: Say
) -> dict[str, Any]:
    """Scores that somebody pasted as the filled-in file, checked like any other."""
    scored = read_judge_data(text.encode(errors="replace"), "what was pasted")
    if scored.get("batch") != exported["batch"]:
        raise InvalidInput(f"what was pasted is not batch {exported['batch']}; paste that batch's file, filled in")
    with _bench(planned, settings, say) as bench:
        return {"in_short": bench.apply(scored).in_short}


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
    with _bench(planned, settings, lambda _text: None) as bench:
        run = find_batch(bench.store, bench.experiment, exported["batch"])
        if is_applied(run):
            return True
        return not _waits(bench, exported["judge"]) & {slot.run_id for slot in read_batch(bench.store, run).slots}


def _bench(planned: Mapping[str, Any], settings: Settings, say: Say) -> Bench:
    """On the host whose pool the judge's task is in, by the rubric of the suite that the run was planned with."""
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
        return judge_named(options.judge, parts).identity


def _waits(bench: Bench, judge: str) -> set[str]:
    """The runs that wait for this judge; where a person judges, for any judge that counts."""
    runs = stored_runs(bench.store, bench.experiment)
    return {run.run_id for run in waiting_runs(runs, judge if bench.options.judge else None, bench.rubric)}


def _open_batch(bench: Bench, judge: JudgeName) -> StoredRun | None:
    """The newest batch for this judge that nobody has scored, where it holds all that waits."""
    runs = stored_runs(bench.store, bench.experiment)
    waiting = {run.run_id for run in pending_runs(runs, judge.name, bench.rubric)}
    wanted = {KIND: BATCH, "tipbench.judge": judge.name, "tipbench.applied": "false"}
    for run in reversed(bench.store.runs(bench.experiment, {**wanted, "tipbench.rubric_digest": bench.rubric.digest})):
        if has_file(run) and waiting == {slot.run_id for slot in read_batch(bench.store, run).slots if slot.run_id}:
            return run
    return None


def _new_batch(bench: Bench, judge: JudgeName) -> StoredRun | None:
    try:
        made = bench.new_batch(judge, EVERYTHING if bench.options.judge else WHAT_FITS, keep_file=True)
    except NothingPending:
        return None
    return find_batch(bench.store, bench.experiment, made.file["batch"])
