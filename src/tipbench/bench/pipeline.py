"""The story: collect → judge → compare. What `tipbench run` and every runner call."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tipbench import __version__
from tipbench.bench.collect.delivery import Delivered, deliver_left_behind, delivering
from tipbench.bench.collect.grid import Grid
from tipbench.bench.collect.journal import Journal, JournalHead, left_behind
from tipbench.bench.collect.loop import collect
from tipbench.bench.collect.plan import Plan, make_plan
from tipbench.bench.compare.snapshot import Look, no_cells
from tipbench.bench.engines.admission import admit
from tipbench.bench.engines.interface import Engine
from tipbench.bench.engines.residency import MemoryWatch
from tipbench.bench.judge.apply import AS_IT_IS, Applied, Manner, apply_file
from tipbench.bench.judge.export import Exported, export_batch
from tipbench.bench.judge.judges.catalog import check_judge
from tipbench.bench.judge.judges.interface import Judge, JudgeName
from tipbench.bench.judge.pending import waiting_runs
from tipbench.bench.judge.sample import Extent
from tipbench.bench.judge.schema import schema, schema_path
from tipbench.bench.judge.settle import effective_verdicts
from tipbench.bench.judge.status import JudgeStatus, judge_status
from tipbench.bench.judge.verify import read_judge_file
from tipbench.bench.options import Options
from tipbench.bench.records import Answer, Failure, GoldItem, ModelInfo, Outcome
from tipbench.bench.suites.read_rubric import parse_rubric
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.suites.suite import Suite
from tipbench.bench.tracking.batches import applied_batches, batch_runs, deciding_batch
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import (
    CELL,
    KIND,
    SUPERSEDED,
    each_cell,
    stored_candidates,
    stored_rubric,
    stored_runs,
    supersede_later,
)
from tipbench.bench.tracking.store import RunStore
from tipbench.bench.workplace import Workplace
from tipbench.core.errors import InvalidInput, JudgeFailed, StoredDataDamaged
from tipbench.core.files import make_private_folder, read_start, write_user_file
from tipbench.core.settings import Settings
from tipbench.core.untrusted import json_text

if TYPE_CHECKING:
    from tipbench.bench.compare.html.page import Report
    from tipbench.bench.compare.leaderboard import Leaderboard

_FAILURES_SHOWN = 5


class Watcher(Protocol):
    """Somebody who wants to see how a collection goes."""

    def planned(self, plan: Plan) -> None: ...

    def done(self, outcome: Outcome) -> None: ...


@dataclass
class Collected:
    """What a collection did."""

    planned: int
    stored_before: int
    failed_before: int
    undelivered: int = 0  # kept in the journal, because MLflow was away
    outages: int = 0
    superseded: int = 0  # generated on another host at the same time
    answered: int = 0
    empty: int = 0
    candidates: int = 0
    failed_now: int = 0
    first_failures: list[Failure] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return self.failed_now + self.failed_before

    @property
    def is_complete(self) -> bool:
        return not self.failed and not self.undelivered

    def count(self, outcome: Outcome) -> None:
        if isinstance(outcome, Answer):
            self.answered += 1
            self.empty += not outcome.candidates
            self.candidates += len(outcome.candidates)
        else:
            self.failed_now += 1
            if len(self.first_failures) < _FAILURES_SHOWN:
                self.first_failures.append(outcome)


def admit_request(
    options: Options, suite: Suite, engine_of: Callable[[str], Engine], check_memory: bool = True
) -> list[ModelInfo]:
    """Checks everything that can be wrong with a request, before a store is touched or anything is generated."""
    suite.first_scenarios(options.n_scenarios)
    for version in options.prompt_names:
        suite.prompt(version)
    if options.judge:
        check_judge(options.judge, Settings())
    return admit(options.model_names, engine_of, options.max_model_b, check_memory)


def plan_collection(
    options: Options, suite: Suite, models: Sequence[ModelInfo], store: RunStore | None, retry_failed: bool = False
) -> Plan:
    """The cells that are still missing from the experiment; without a store, all of them."""
    experiment = store.find_experiment(options.experiment) if store else None
    if store and experiment:
        check_own(store, experiment)
    of_suite = experiment.tags.get("tipbench.suite", suite.name) if experiment else suite.name
    if of_suite != suite.name:
        raise InvalidInput(
            f"experiment '{options.experiment}' belongs to suite '{of_suite}', not '{suite.name}'; give this one "
            f"a name of its own, such as --experiment {suite.experiment_prefix}1"
        )
    stored = each_cell(store, experiment) if store and experiment else ()
    return make_plan(models, Grid(options, suite, models), stored, retry_failed)


def start_over(
    options: Options, suite: Suite, models: Sequence[ModelInfo], work: Workplace, before_ms: int | None = None
) -> int:
    """Sets the stored runs of this grid aside, scores and all; they stay in MLflow and count no more.

    `before_ms`: only those that are older, so that starting over can be done again halfway.
    """
    experiment = work.store.find_experiment(options.experiment)
    if experiment is None:
        return 0
    keys = {cell.key for cell in Grid(options, suite, models)}
    aside = [
        run
        for run in stored_runs(work.store, experiment)
        if run.tags["tipbench.cell_key"] in keys and (before_ms is None or run.started_ms < before_ms)
    ]
    with work.store.session():
        for run in aside:
            work.store.extend_run(run, {SUPERSEDED: "true", "judge_pending": "false"}, at_ms=work.now_ms)
    return len(aside)


def check_own(store: RunStore, experiment: Experiment) -> None:
    """tipbench keeps out of experiments that belong to somebody else."""
    foreign = store.foreign_runs(experiment)
    if foreign:
        raise InvalidInput(
            f"experiment '{experiment.name}' holds {foreign} runs that are not tipbench's; it was left as it is"
        )


def collect_cells(
    options: Options,
    suite: Suite,
    plan: Plan,
    engine_of: Callable[[str], Engine],
    work: Workplace,
    watcher: Watcher,
    keep_up: bool = False,
) -> Collected:
    """Phase A: every cell of the plan is generated and stored.

    `keep_up`: the next cell waits until MLflow has the one before, because this machine's disk may not be there later.
    """
    watcher.planned(plan)
    collected = Collected(plan.cells, plan.stored, plan.failed_before)
    if not plan.to_do:
        return collected

    def experiment() -> Experiment:
        tags = {"tipbench.suite": suite.name, "tipbench.version": __version__}
        return work.store.ensure_experiment(options.experiment, tags)

    head = JournalHead(work.store.address, options.experiment, suite.name, {"rubric.md": suite.rubric.text})
    journal = Journal.create(work.journals, head, work.new_id())
    with delivering(journal, work.store, experiment, keep_up) as keeper, MemoryWatch() as watch:
        for outcome in collect(plan.to_do, engine_of, suite, keeper.keep, watch, work.clock, options.concurrency):
            collected.count(outcome)
            watcher.done(outcome)
    collected.undelivered, collected.outages = keeper.undelivered, keeper.delivered.outages
    if work.store.is_shared and not collected.undelivered:
        collected.superseded = supersede_later(work.store, experiment())
    return collected


def deliver_earlier(work: Workplace, experiment: str) -> Delivered:
    """What an earlier collection of this experiment generated and could not deliver."""
    return deliver_left_behind(left_behind(work.journals, work.store.address, experiment), work.store)


def something_pending(work: Workplace, experiment: Experiment, rubric: Rubric, judge: str | None) -> bool:
    """Whether anything waits for this judge; without one, for any judge that counts."""
    return bool(waiting_runs(stored_runs(work.store, experiment), judge, rubric))


def check_export_path(path: Path) -> None:
    """Nobody's scores are ever overwritten."""
    if path.exists():
        raise InvalidInput(f"{path} exists and may hold somebody's scores; move it away or name another file")
    if not path.parent.is_dir():
        raise InvalidInput(f"{path} can't be written: there is no folder {path.parent}")
    beside = schema_path(path)
    if beside.is_file() and b'"tipbench-judge/' in read_start(beside):
        raise InvalidInput(f"{beside}, where the schema goes, is a judge file; name another file to export to")


def export_for_judge(
    work: Workplace,
    experiment: Experiment,
    rubric: Rubric,
    judge: JudgeName,
    seed: int,
    path: Path,
    extent: Extent,
    gold: Sequence[GoldItem],
) -> Exported:
    """Phase B, first half: pending candidates, anchors and repeats go into a file, with its schema next to it."""
    check_export_path(path)
    exported = export_batch(
        work.store, experiment, rubric, judge, seed, work.new_id, work.now_ms, extent, gold, keep_file=True
    )
    write_user_file(schema_path(path), json_text(schema(rubric, exported.items)))
    write_user_file(path, json_text({"$schema": f"./{schema_path(path).name}", **exported.file}))
    return exported


def apply_scores(
    work: Workplace, experiment: Experiment, path: Path, manner: Manner, private: Sequence[GoldItem]
) -> Applied:
    """Phase B, second half: a filled-in file is checked as a whole and then written back."""
    return apply_file(work.store, experiment, read_judge_file(path), work.now_ms, manner, private)


def run_judge(
    work: Workplace,
    experiment: Experiment,
    rubric: Rubric,
    judge: Judge,
    seed: int,
    extent: Extent,
    gold: Sequence[GoldItem],
    manner: Manner = AS_IT_IS,
    alone: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Applied:
    """Phase B by a judge that runs by itself, through the same file and the same checks.

    What the judge gave is kept until it is applied: hours of a judge's work are not lost to an item that is missing.
    """
    exported = export_batch(
        work.store, experiment, rubric, judge.identity, seed, work.new_id, work.now_ms, extent=extent, gold=gold
    )
    scored = score_batch(judge, exported.file)
    kept = work.journals.parent / "judged" / f"{exported.file['batch']}.json"
    make_private_folder(kept.parent)
    write_user_file(kept, json_text(scored))
    try:
        with alone():
            applied = apply_file(work.store, experiment, scored, work.now_ms, manner, gold)
    except InvalidInput as error:
        raise JudgeFailed(
            f"{error}\nWhat the judge gave is kept in {kept}: --apply it, with --partial if need be"
        ) from error
    kept.unlink(missing_ok=True)
    return applied


def score_batch(judge: Judge, file: dict[str, Any]) -> dict[str, Any]:
    """The batch's file as the judge filled it in."""
    scored = judge.score(file)
    if scored.get("format") != file["format"] or scored.get("batch") != file["batch"]:
        raise JudgeFailed(f"what the judge '{judge.identity.name}' gave back is not the batch that it was given")
    return scored


def status_of_judges(
    store: RunStore, experiment: Experiment, rubric: Rubric
) -> tuple[JudgeStatus, Rubric, dict[tuple[str, int], str]]:
    """How the judges stand, and the texts of what they disagree on most."""
    status = judge_status(applied_batches(store, batch_runs(store, experiment), rubric.digest), rubric)
    wanted = {one.item for one in status.disputed}
    runs = {run.run_id: run for run in stored_runs(store, experiment)}
    texts = {
        (run_id, number): stored_candidates(store, runs[run_id]).texts[number]
        for run_id, number in wanted
        if run_id in runs
    }
    return status, rubric, texts


def compare(look: Look, rubric: Rubric) -> "Leaderboard":
    """Phase C: the leaderboard per (model, prompt)."""
    from tipbench.bench.compare.leaderboard import leaderboard_of  # brings numpy: 20 MB that collecting can do without

    return leaderboard_of(look, rubric)


def report(store: RunStore, look: Look, rubric: Rubric, board: "Leaderboard", made_at: str) -> "Report":
    """The leaderboard with what stands behind it: how far its judges can be trusted, and texts to look at."""
    from tipbench.bench.compare.examples import pick_examples
    from tipbench.bench.compare.html.page import Report
    from tipbench.bench.compare.reliability import judged_batches

    batches = applied_batches(store, batch_runs(store, look.experiment), rubric.digest)
    verdicts = effective_verdicts(batches)
    shown = [verdicts[judge] for judge in board.judges if judge in verdicts]
    cells = {cell.run_id: cell for cell in look.cells}

    def text_of(run_id: str, candidate: int) -> str:
        found = store.runs(look.experiment, {KIND: CELL, "tipbench.cell_key": cells[run_id].key})
        texts = [stored_candidates(store, run).texts for run in found if run.run_id == run_id]
        if not texts or candidate >= len(texts[0]):
            raise StoredDataDamaged(f"candidate {candidate} of run {run_id} was judged and is gone; try --refresh")
        return texts[0][candidate]

    return Report(
        board=board,
        batches=judged_batches(batches),
        alpha=judge_status(batches, rubric).alpha,
        examples=pick_examples(look.cells, shown, text_of),
        made_at=made_at,
    )


def current_rubric(store: RunStore, experiment: Experiment) -> Rubric:
    """The rubric of the newest counted scores, else of provisional ones, else the one that the newest cell carries."""
    run = deciding_batch(batch_runs(store, experiment))
    runs = [run] if run else stored_runs(store, experiment)
    if not runs:
        raise no_cells(experiment)
    return parse_rubric(stored_rubric(store, runs[-1]), f"rubric.md of run {runs[-1].run_id}")
