"""The bench: collect, judge and compare an experiment. The command line, the DAG and notebooks use the same methods.

    with Bench("tip-bench-first", suite="tip") as bench:
        bench.collect(models="qwen2.5:0.5b,gemma3:1b", prompts="v1,v3-few-shot", n_tips=5)
        bench.export("judge.json", judge="lena")
        bench.apply("judge.json")
        board = bench.compare()

Imports that only some methods need are inside them: comparing needs no engines, collecting no numpy.
"""

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tipbench.bench.compare.snapshot import Snapshot, load_snapshot, rubric_of
from tipbench.bench.context import Context, Share
from tipbench.bench.judge.settle import finish_applying
from tipbench.bench.options import Options, make_options
from tipbench.bench.records import ModelInfo
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.address import open_store, prefix_notice, remember_experiment
from tipbench.bench.tracking.batches import batch_runs, unsettled_batches
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import (
    SUPERSEDED,
    CellCounts,
    count_cells,
    iter_outcomes,
    stored_runs,
    supersede_duplicates,
    unjudged_cells,
)
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import EngineError, InvalidInput, NothingStored, ScoresRefused, SuiteError, TipbenchError
from tipbench.core.paths import agent_folder, journal_folder, judged_folder, server_folder, snapshot_folder
from tipbench.core.settings import Settings
from tipbench.core.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

    from tipbench.bench.collect.delivery import DeliveryResult, SyncResult
    from tipbench.bench.collect.plan import Collected, Plan
    from tipbench.bench.compare.html.page import Report
    from tipbench.bench.compare.leaderboard import Leaderboard
    from tipbench.bench.decide.rounds import Round
    from tipbench.bench.engines.catalog import Engines
    from tipbench.bench.judge.apply import Applied, ApplyOptions
    from tipbench.bench.judge.calibration import Calibration
    from tipbench.bench.judge.export import Exported, StoredFor
    from tipbench.bench.judge.judges.interface import Judge, JudgeName
    from tipbench.bench.judge.proposals import Proposals
    from tipbench.bench.judge.sample import BatchSize
    from tipbench.bench.judge.status import JudgeStatus
    from tipbench.bench.publish.publish import Published
    from tipbench.bench.records import GoldItem
    from tipbench.bench.suites.suite import Suite

_MAX_PUBLISHED = 2_000  # cells: for more, a collection or an apply would need much time and memory only to publish
_REFUSED_SCORES = "judged.json"  # in a batch's run: a judge's scores that could not be applied


class Bench:
    """One experiment. Close it, or use it in a `with` statement. Methods raise the errors of `tipbench.core.errors`.

    Keyword arguments are run options: suite, models, prompts, n_tips, mlflow_url, seed and so on.
    """

    def __init__(self, experiment: str | None = None, *, context: Context | None = None, **options: Any) -> None:
        """Validate the options; raise InvalidInput with every problem. Nothing is opened yet."""
        given = options if experiment is None else {**options, "experiment": experiment}
        self._init(make_options(given), context or Context(), experiment is not None)

    @classmethod
    def from_options(cls, options: Options, context: Context | None = None) -> "Bench":
        """Create a bench from validated options."""
        bench = cls.__new__(cls)
        bench._init(options, context or Context(), named=True)
        return bench

    def _init(self, options: Options, context: Context, named: bool) -> None:
        self.options = options
        self.context = context
        self._named = named
        self._named_suite = options.suite if "suite" in options.model_fields_set else None
        self.given_options = {key: getattr(options, key) for key in options.model_fields_set}
        self._suite: Suite | None = None
        self._store: RunStore | None = context.store

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None and self._store and self._store.files_refused:
            self._note(f"Texts were stored as tags, because files were refused: {self._store.files_refused}")
        if kind is None and self._store and (notice := prefix_notice(self._store)):
            self._note(notice)
        self.close()

    def close(self) -> None:
        """Close the store, unless it was passed in with the context."""
        if self._store and self._store is not self.context.store:
            self._store.close()
        self._store = self.context.store

    # Collecting

    def plan(self, *, retry_failed: bool = False, **options: Any) -> "Plan":
        """Return what `collect` would generate, without generating or storing anything."""
        from tipbench.bench.engines.catalog import open_engines

        suite = self.set_options(**options)
        with open_engines(self.options, self.context.settings) as engines:
            models = self._admit(suite, engines)
        try:
            store: RunStore | None = self.store
        except NothingStored:
            store = None
        return self._plan(suite, models, retry_failed, store)

    def collect(
        self,
        *,
        retry_failed: bool = False,
        fresh: bool = False,
        wait: bool = True,
        share: Share | None = None,
        only: Collection[tuple[str, str, str]] | None = None,
        **options: Any,
    ) -> "Collected":
        """Generate and store every missing cell: (model × prompt × scenario), repeated as the options say.

        `retry_failed` also retries cells that failed before; `fresh` first supersedes all stored cells of this grid.
        Without `wait`, raise LockTaken if another process collects this experiment or uses the same engine.
        `only` restricts it to some cells: model, prompt and scenario.
        """
        from tipbench.bench.collect.loop import exclusive_collection
        from tipbench.bench.engines.catalog import open_engines

        suite, settings, observer = self.set_options(**options), self.context.settings, self.context.observer
        with open_engines(self.options, settings) as engines:
            models = self._admit(suite, engines) if share is None else ()
            store = self._open_store(create=share is None)
            part = share.part if share else ()
            with exclusive_collection(
                engines, self.options, store.address, settings.home, wait, observer.waiting, part=part
            ):
                if share:
                    share.before_admission(engines)
                    models = self._admit(suite, engines)
                self._deliver_left_behind()
                if fresh:
                    count = self.start_over(models)
                    self._note(
                        f"{count} stored cells no longer count: they stay in MLflow, tagged tipbench.superseded."
                    )
                plan = self._plan(suite, models, retry_failed, store, only)
                if share is None:
                    remember_experiment(settings, self.options.experiment, store.address, str(suite.folder))
                collected = self._generate(suite, plan, engines, keep_up=share is not None)
                if suite.rubric.by_code and not collected.undelivered:
                    self._score_stored_cells(suite.rubric)
        if share is None and plan.to_do and not collected.undelivered:
            self._publish_after_collecting(plan.cells)
        return collected

    def start_over(self, models: Sequence[ModelInfo], before_ms: int | None = None) -> int:
        """Supersede the stored runs of this grid with their scores: they stay in MLflow but no longer count.

        With `before_ms`, only older runs, so that an interrupted call can be repeated. Return the number of runs.
        """
        from tipbench.bench.collect.grid import Grid

        experiment = self.store.find_experiment(self.options.experiment)
        if experiment is None:
            return 0
        keys = {cell.key for cell in Grid(self.options, self.suite, models)}
        superseded = [
            run
            for run in stored_runs(self.store, experiment)
            if run.tags["tipbench.cell_key"] in keys and (before_ms is None or run.started_ms < before_ms)
        ]
        with self.store.session():
            for run in superseded:
                self.store.extend_run(run, {SUPERSEDED: "true", "judge_pending": "false"}, at_ms=self.now_ms)
        return len(superseded)

    def check_models(self) -> None:
        """Check that the options can be run: prompts, judge, models and their sizes. Raises InvalidInput if not."""
        from tipbench.bench.engines.catalog import open_engines

        with open_engines(self.options, self.context.settings) as engines:
            self._admit(self.suite, engines)

    def missing_cells(self, models: Sequence[ModelInfo], retry_failed: bool = False) -> "Plan":
        """Plan the missing cells of these models; raise InvalidInput if the experiment holds foreign runs."""
        return self._plan(self.suite, models, retry_failed, self.store)

    def _admit(self, suite: "Suite", engines: "Engines") -> list[ModelInfo]:
        """Check the whole request before a store is touched or anything is generated; return the models."""
        from tipbench.bench.engines.admission import admit
        from tipbench.bench.judge.judges.catalog import check_judge

        options, settings = self.options, self.context.settings
        suite.first_scenarios(options.n_scenarios)
        for version in options.prompt_names:
            suite.prompt(version)
        if options.judge:
            check_judge(options.judge, settings)
        check_memory = settings.is_true("TIPBENCH_MEMORY_CHECK")
        return admit(options.model_names, engines.of, options.max_model_b, check_memory)

    def _plan(
        self,
        suite: "Suite",
        models: Sequence[ModelInfo],
        retry_failed: bool,
        store: RunStore | None,
        only: Collection[tuple[str, str, str]] | None = None,
    ) -> "Plan":
        """Plan the cells that are missing from the experiment; without a store, all cells."""
        from tipbench.bench.collect.grid import Grid
        from tipbench.bench.collect.plan import make_plan

        name = self.options.experiment
        experiment = store.find_experiment(name) if store else None
        if store and experiment:
            _check_own(store, experiment)
        stored_suite = experiment.tags.get("tipbench.suite", suite.name) if experiment else suite.name
        if stored_suite != suite.name:
            raise InvalidInput(
                f"experiment '{name}' belongs to suite '{stored_suite}', not '{suite.name}'; choose another name, "
                f"such as --experiment {suite.experiment_prefix}1"
            )
        stored = iter_outcomes(store, experiment) if store and experiment else ()
        return make_plan(models, Grid(self.options, suite, models, only), stored, retry_failed, only is None)

    def _deliver_left_behind(self) -> None:
        """Store answers that an earlier collection of this experiment generated but could not deliver."""
        from tipbench.bench.collect.delivery import deliver_orphaned
        from tipbench.bench.collect.journal import orphaned_journals

        journals = journal_folder(self.context.settings.home)
        found = orphaned_journals(journals, self.store.address, self.options.experiment)
        delivered: DeliveryResult = deliver_orphaned(found, self.store)
        if delivered.cells:
            self._note(f"{delivered.cells} cells that an earlier run could not store are in MLflow now.")

    def _generate(self, suite: "Suite", plan: "Plan", engines: "Engines", keep_up: bool) -> "Collected":
        """Generate and store every cell of the plan.

        With `keep_up`, each cell waits until MLflow has the previous one: this machine's disk may not survive the run.
        """
        from tipbench.bench.collect.delivery import open_cell_writer
        from tipbench.bench.collect.journal import Journal, JournalHead
        from tipbench.bench.collect.loop import collect
        from tipbench.bench.collect.plan import Collected
        from tipbench.bench.engines.residency import MemoryWatch

        context, name, store = self.context, self.options.experiment, self.store
        context.observer.planned(plan)
        collected = Collected(plan.cells, plan.stored, plan.failed_before)
        if not plan.to_do:
            return collected
        started = context.clock()

        def experiment() -> Experiment:
            return store.ensure_experiment(name, {"tipbench.suite": suite.name, "tipbench.version": __version__})

        head = JournalHead(store.address, name, suite.name, {"rubric.md": suite.rubric.text})
        journal = Journal.create(journal_folder(context.settings.home), head, context.new_id())
        try:
            with open_cell_writer(journal, store, experiment, keep_up) as writer, MemoryWatch() as watch:
                for outcome in collect(
                    plan.to_do, engines.of, suite, writer.write, watch, context.clock, self.options.concurrency
                ):
                    collected.count(outcome)
                    context.observer.done(outcome)
        except EngineError:
            self._note("Everything done so far is stored; the same command continues from there.")
            raise
        collected.undelivered, collected.outages = writer.undelivered, writer.delivered.outages
        if store.is_shared and not collected.undelivered:
            collected.superseded = supersede_duplicates(store, experiment())
        collected.seconds = context.clock() - started
        return collected

    def _score_stored_cells(self, rubric: Rubric) -> None:
        """Score cells again that were collected before a check was changed; no judge is needed for that."""
        from tipbench.bench.judge.by_code import write_scores

        changed = write_scores(self.store, self.experiment, rubric, self.now_ms)
        if changed:
            self._note(f"{changed} stored cells were scored again: the suite's checks have changed.")

    @staticmethod
    def sync(settings: Settings | None = None) -> "Iterator[SyncResult]":
        """Deliver all answers that were generated while MLflow was unreachable, each to its collection's store."""
        from tipbench.bench.collect.delivery import deliver_all

        return deliver_all(settings or Settings())

    # Judging

    def pending(self, judge: str | None = None) -> int:
        """Return how many cells wait for this judge; without a name, for any judge whose scores count."""
        from tipbench.bench.judge.export import waiting_runs

        return len(waiting_runs(stored_runs(self.store, self.experiment), judge, self.rubric))

    def export(self, path: str | Path, judge: str = "person", size: "BatchSize | None" = None) -> "Exported":
        """Write a batch for this judge to a file, with anchors and repeats mixed in, and its JSON schema next to it.

        Raises NothingPending if there is nothing to judge.
        """
        from tipbench.bench.judge.file import check_export_path, schema, schema_path
        from tipbench.bench.judge.judges.catalog import person
        from tipbench.core.files import write_user_file
        from tipbench.core.untrusted import json_text

        path = Path(path)
        check_export_path(path)
        of_a_job = path.resolve().is_relative_to(server_folder(self.context.settings.home).resolve())
        exported = self.new_batch(person(judge), size, "job" if of_a_job else "file")
        for line in exported.notes:
            self.context.observer.note(line)
        write_user_file(schema_path(path), json_text(schema(self.rubric, exported.items)))
        write_user_file(path, json_text({"$schema": f"./{schema_path(path).name}", **exported.file}))
        return exported

    def export_folder(self, folder: str | Path, judge: str, size: "BatchSize | None" = None) -> "Exported":
        """Write a batch for an agent to a folder: instructions, items in parts, and room for its scores.

        It holds everything that is pending, unless a size is given. Raises NothingPending if there is nothing to judge.
        """
        from tipbench.bench.judge.judges.catalog import AGENT, person
        from tipbench.bench.judge.parts import check_folder, write_folder
        from tipbench.bench.judge.sample import EVERYTHING

        check_folder(Path(folder))
        exported = self.new_batch(person(judge, AGENT), size or EVERYTHING, "file")
        for line in exported.notes:
            self.context.observer.note(line)
        write_folder(Path(folder), exported.file)
        return exported

    def new_batch(
        self, judge: "JudgeName", size: "BatchSize | None" = None, stored_for: "StoredFor" = "program"
    ) -> "Exported":
        """Record a batch for this judge; unless it is for a program, MLflow stores its file too.

        Of a decision it is what its next round needs, whatever the size. Raises NothingPending if there is nothing to
        judge.
        """
        from tipbench.bench.judge.export import DEFAULT_SIZE, export_batch

        context = self.context
        if self.is_decision and not (size and size.only):
            from tipbench.bench.deciding import next_batch

            return next_batch(self, judge, stored_for)
        return export_batch(
            self.store,
            self.experiment,
            self.rubric,
            judge,
            self.options.seed,
            context.new_id,
            self.now_ms,
            size or DEFAULT_SIZE,
            self.anchors,
            stored_for,
        )

    def apply(self, scores: str | Path | Mapping[str, Any], how: "ApplyOptions | None" = None) -> "Applied":
        """Check a filled-in judge file and write its scores back, all or nothing. A lock serialises processes.

        Of a folder that an agent judges, whatever is scored by now is written; the rest is reported and can follow.
        Raises JudgeFileError with every problem of the file.
        """
        if not isinstance(scores, Mapping) and Path(scores).is_dir():
            return self._apply_folder(Path(scores), how)
        from tipbench.bench.judge.apply import DEFAULT_OPTIONS, apply_file
        from tipbench.bench.judge.export import exclusive_judging
        from tipbench.bench.judge.verify import read_judge_file

        experiment, anchors, settings = self.experiment, self.anchors, self.context.settings
        with exclusive_judging(self.store.address, experiment.name, settings, self.context.observer.waiting):
            data = dict(scores) if isinstance(scores, Mapping) else read_judge_file(Path(scores))
            applied = apply_file(self.store, experiment, data, self.now_ms, how or DEFAULT_OPTIONS, anchors)
            changed = applied.changed and not (how and how.dry_run)
            if changed and self.is_decision:
                from tipbench.bench.deciding import look_after_applying

                look_after_applying(self)
        if changed:
            self._publish_after_applying(applied.settled.cells if applied.settled else 0)
        return applied

    def _apply_folder(self, folder: Path, how: "ApplyOptions | None") -> "Applied":
        from dataclasses import replace

        from tipbench.bench.judge.apply import DEFAULT_OPTIONS, usable_scores
        from tipbench.bench.judge.file import FORMAT
        from tipbench.bench.judge.parts import read_folder
        from tipbench.core.errors import JudgeFileError

        found = read_folder(folder)
        usable, problems = usable_scores(self.store, self.experiment, found.batch, found.scores)
        problems += [f"{folder / name}: no scores of this batch were found in it" for name in found.unusable]
        if not usable:
            raise JudgeFileError(f"{folder} has no scores that can be applied; nothing was written:", problems)
        for problem in problems:
            self._note(f"Not applied: {problem}")
        data = {"format": FORMAT, "batch": found.batch, "scores": usable}
        return self.apply(data, replace(how or DEFAULT_OPTIONS, partial=True))

    def judge(
        self,
        name: "str | Judge",
        identity: str | None = None,
        size: "BatchSize | None" = None,
        how: "ApplyOptions | None" = None,
    ) -> "Applied":
        """Have an automatic judge (lexical, agent, command, webhook, model) score what is pending, and apply that.

        The judge may also be an object with an `identity` and a method `score`, which fills in a judge file.

        Raises NothingPending if there is nothing to judge, JudgeLater if it will answer later, JudgeFailed if it fails.
        """
        from tipbench.bench.judge.judges.interface import ResumableJudge
        from tipbench.bench.judge.sample import EVERYTHING

        with self.open_judge(name, identity) as judge:
            if not isinstance(judge, ResumableJudge):
                return self.judge_file(judge, self.new_batch(judge.identity, size or EVERYTHING).file, how)
            file = self._open_batch_of(judge.identity)
            if file is None:
                file = self.new_batch(judge.identity, size or EVERYTHING, "page").file
            return self.judge_file(judge, file, how)

    def _open_batch_of(self, judge: "JudgeName") -> dict[str, Any] | None:
        """Return the file of the judge's newest batch that is open and stored; None if there is none."""
        from tipbench.bench.tracking.batches import batch_file, has_file, open_batches

        own = [run for run in open_batches(self.store, self.experiment, judge.name) if has_file(run)]
        return batch_file(self.store, own[-1]) if own else None

    def judge_batch(self, name: str, run: StoredRun) -> "Applied":
        """Have an automatic judge score a batch whose file is in MLflow, and apply its scores."""
        from tipbench.bench.tracking.batches import batch_file

        with self.open_judge(name) as judge:
            return self.judge_file(judge, batch_file(self.store, run), batch_run=run)

    def judge_file(
        self,
        judge: "Judge",
        file: dict[str, Any],
        how: "ApplyOptions | None" = None,
        batch_run: StoredRun | None = None,
    ) -> "Applied":
        """Have an opened judge score a batch's file, and apply its scores; what that took is stored with the batch.

        Scores that can't be applied are saved in `batch_run`, else on this machine.
        """
        from tipbench.bench.judge.judges.interface import ResumableJudge
        from tipbench.bench.tracking.batches import COST_USD, find_batch

        applied = self._apply_judged(_score(judge, file), how, batch_run)
        if isinstance(judge, ResumableJudge):
            usage = {name: value for name, value in judge.usage.items() if value}
            run = find_batch(self.store, self.experiment, str(file["batch"]))
            self.store.extend_run(run, {}, usage, at_ms=self.now_ms)
            return replace(applied, cost_usd=usage.get(COST_USD, 0.0))
        return applied

    def calibrate(self, name: "str | Judge", identity: str | None = None) -> "Calibration":
        """Have an automatic judge score the suite's anchors twice, and return what a batch by it would be worth.

        The result is stored on this machine, and shown beside the judge. It needs no experiment.
        """
        from tipbench.bench.judge.calibration import calibrate, save_calibration

        suite, home, batch = self.suite, self.context.settings.home, self.context.new_id()
        self.rubric = suite.rubric
        with self.open_judge(name, identity, with_store=False) as judge:
            found = calibrate(judge, suite.rubric, suite.anchors, batch, self.now_ms)
        save_calibration(home, found)
        shutil.rmtree(agent_folder(home, batch), ignore_errors=True)
        return found

    @contextmanager
    def open_judge(
        self, name: "str | Judge", identity: str | None = None, with_store: bool = True
    ) -> Iterator["Judge"]:
        """Open an automatic judge with the resources that it needs while it judges."""
        from tipbench.bench.judge.judges.open_judge import open_judge

        if not isinstance(name, str):
            yield name
            return
        context = self.context
        with open_judge(
            name,
            self.rubric,
            self.options,
            self.store if with_store else None,
            context.settings,
            context.clock,
            context.observer.note,
            identity,
            context.observer.scored,
        ) as judge:
            yield judge

    def status(self) -> "tuple[JudgeStatus, dict[tuple[str, int], str]]":
        """Return the judges' drift over time and agreement, and the texts of the items they disagree on most."""
        from tipbench.bench.report import status_of_judges

        return status_of_judges(self.store, self.experiment, self.rubric)

    def propose_anchors(self, tolerance: int = 0) -> "Proposals":
        """Propose anchors for the experiment's suite from candidates that judges agree on, for a person to accept."""
        from tipbench.bench.judge.proposals import propose_anchors

        return propose_anchors(self.store, self.experiment, self.own_suite(), tolerance)

    def own_suite(self) -> "Suite":
        """Load the suite that was named, else the experiment's own; raise InvalidInput if it is not on this machine."""
        from tipbench.bench.judge.export import suite_here
        from tipbench.bench.suites.load import load_suite

        if self._named_suite or self._suite:
            return self.suite
        experiment, settings = self.experiment, self.context.settings
        named = suite_here(experiment, settings)
        if named is None:
            suite = experiment.tags.get("tipbench.suite", "")
            raise InvalidInput(f"the suite '{suite}' is not on this machine; --suite FOLDER says where it is")
        return load_suite(named, settings)

    def _apply_judged(
        self, scored: dict[str, Any], how: "ApplyOptions | None" = None, batch_run: StoredRun | None = None
    ) -> "Applied":
        """Apply a judge's scores. They are saved until then, so that a missing item does not lose hours of work."""
        from tipbench.core.files import make_private_folder, write_user_file
        from tipbench.core.untrusted import json_text

        backup = judged_folder(self.context.settings.home) / f"{scored['batch']}.json"
        make_private_folder(backup.parent)
        write_user_file(backup, json_text(scored))
        try:
            applied = self.apply(scored, how)
        except InvalidInput as error:
            if batch_run is None:
                where = f"{backup}: --apply it, with --partial if need be"
            else:  # this machine's disk may not survive the run
                texts = {_REFUSED_SCORES: json_text(scored)}
                self.store.extend_run(batch_run, {}, new_texts=texts, at_ms=self.now_ms)
                where = f"MLflow, {_REFUSED_SCORES} of run {batch_run.run_id}: mend it and --apply it"
            raise ScoresRefused(f"{error}\nThe judge's answer was saved in {where}") from error
        backup.unlink(missing_ok=True)
        if not applied.left:
            shutil.rmtree(agent_folder(self.context.settings.home, str(scored["batch"])), ignore_errors=True)
        return applied

    # Deciding

    def decide(
        self,
        judge: "str | Judge | None" = None,
        *,
        claim: str | None = None,
        good_enough: float | None = None,
        budget: int | None = None,
        **options: Any,
    ) -> "Round":
        """Decide between the rows of models × prompts in rounds, and return where the decision stands.

        Called again, it goes on where it was, with the rules and options that it began with. With an automatic judge,
        it goes on until the decision is made, the pool is used up, or judges were given `budget` items. Without one, it
        generates what the next rounds need; `export` gives a person the next batch. `claim` is "pool" (the default) or
        "new"; `good_enough` is the expected loss to stop at, by default 0.15 points, and 0 for a proof.
        """
        from tipbench.bench.deciding import go_on, start_decision

        start_decision(self, {"claim": claim, "good_enough": good_enough}, budget, options)
        return go_on(self, judge)

    def start_decision(self, budget: int | None = None, **rules: Any) -> "Round":
        """Start the decision without generating anything; `rules` are `claim` and `good_enough`."""
        from tipbench.bench.deciding import look_at, start_decision

        start_decision(self, {"claim": None, "good_enough": None, **rules}, budget, {})
        return look_at(self)

    def look(self) -> "Round":
        """Return where the decision of this experiment stands, by the scores so far."""
        from tipbench.bench.deciding import look_at

        return look_at(self)

    def stop_decision(self, by: str) -> "Round":
        """Stop the decision: judges get nothing more of it until `decide` goes on. `by` is who takes its leader."""
        from tipbench.bench.deciding import stop_decision

        return stop_decision(self, by)

    @property
    def is_decision(self) -> bool:
        """Whether the experiment was made for a decision in rounds; False if it does not exist."""
        from tipbench.bench.tracking.batches import OF_DECISION

        try:
            found = self.store.find_experiment(self.options.experiment)
        except NothingStored:
            return False
        return found is not None and OF_DECISION in found.tags

    # Comparing

    def compare(self, refresh: bool = False) -> "Leaderboard":
        """Return the leaderboard of (model, prompt) rows. `refresh` ignores the cache and reads everything again."""
        from tipbench.bench.compare.leaderboard import leaderboard_of

        snapshot = self.snapshot(refresh)
        board = leaderboard_of(snapshot, self.rubric_for(snapshot))
        self.publish_answer(snapshot, board)
        return board

    def publish_answer(self, snapshot: Snapshot, board: "Leaderboard") -> None:
        """Bring the experiment's description in MLflow up to date with this board's answer, if MLflow takes it."""
        from tipbench.bench.compare.description import describe_experiment
        from tipbench.core.text import utc_minute

        describe_experiment(self.store, snapshot, board, utc_minute(self.context.clock() * 1000))

    def _publish_after_collecting(self, cells: int) -> None:
        """Publish the answer; of many cells, only that there are new ones.

        Mostly it is that nothing is judged: to say so, a file's cells need not be read whole.
        """
        from tipbench.bench.compare.description import describe_unjudged
        from tipbench.core.text import utc_minute

        if cells > _MAX_PUBLISHED:
            self._publish_news("There are new texts.")
            return
        waiting = None
        with suppress(TipbenchError):
            experiment = self.experiment
            if not (self.store.is_shared or self.is_decision or batch_runs(self.store, experiment)):
                waiting = unjudged_cells(self.store, experiment)
            if waiting:
                describe_unjudged(self.store, experiment, waiting, utc_minute(self.context.clock() * 1000))
        if not waiting:
            self._publish_new_answer()

    def _publish_after_applying(self, cells: int) -> None:
        """Publish the answer; of many cells, only that there are new scores, unless a decision has the answer ready."""
        if cells <= _MAX_PUBLISHED or self.is_decision:
            self._publish_new_answer()
        else:
            self._publish_news("There are new scores.")

    def _publish_news(self, news: str) -> None:
        from tipbench.bench.compare.description import describe_news
        from tipbench.core.text import utc_minute

        with suppress(TipbenchError):
            describe_news(self.store, self.experiment, news, utc_minute(self.context.clock() * 1000))

    def _publish_new_answer(self) -> None:
        """Publish the answer after results have changed. They are stored, so no problem here is the caller's."""
        from tipbench.bench.compare.leaderboard import leaderboard_of

        with suppress(TipbenchError):
            snapshot = self.snapshot()
            self.publish_answer(snapshot, leaderboard_of(snapshot, rubric_of(snapshot)))

    def report(self) -> "Report":
        """Return the leaderboard with its evidence: judges, drift, texts. `as_html` renders it as a page."""
        from tipbench.bench.compare.leaderboard import leaderboard_of
        from tipbench.bench.report import make_report
        from tipbench.core.text import utc_minute

        snapshot = self.snapshot()
        rubric = self.rubric_for(snapshot)
        board = leaderboard_of(snapshot, rubric)
        made_at = utc_minute(self.context.clock() * 1000)
        return make_report(self.store, snapshot, rubric, board, made_at, self.context.settings.home)

    def scores(self) -> "DataFrame":
        """Return every single score, and each cell's resulting scores (kind = cell), as `compare --scores` writes them.

        Raises MissingExtra if pandas is not installed.
        """
        from tipbench.bench.compare.scores import all_scores, frame_of

        snapshot = self.snapshot()
        return frame_of(all_scores(self.store, snapshot, self.rubric_for(snapshot)))

    def snapshot(self, refresh: bool = False) -> Snapshot:
        """Return a snapshot of the experiment, as comparing needs it; it is cached until something is written."""
        found = self.snapshot_of(self.experiment, refresh)
        return self.scored_by_code(found, self.suite.rubric) if self._named_suite or self._suite else found

    def scored_by_code(self, snapshot: Snapshot, rubric: Rubric) -> Snapshot:
        """Return the snapshot with the scores of this rubric, where it consists of checks that have changed since.

        Stored texts are checked again; nothing is written.
        """
        if not rubric.by_code or not any(cell.awaits_judge(rubric.digest) for cell in snapshot.cells):
            return snapshot
        from dataclasses import replace

        from tipbench.bench.judge.by_code import score_again

        return replace(snapshot, cells=score_again(self.store, snapshot.experiment, snapshot.cells, rubric))

    def snapshot_of(self, experiment: Experiment, refresh: bool = False) -> Snapshot:
        """Return a snapshot of another experiment of the store, which the caller has just looked up."""
        folder = snapshot_folder(self.context.settings.home)
        return load_snapshot(self.store, experiment, folder, refresh, self.context.clock, finish_applying)

    def count_cells(self, experiment: Experiment) -> CellCounts:
        """Count the cells of an experiment of the store, which the caller has just looked up."""
        if self.store.is_shared or unsettled_batches(self.store, experiment):
            return CellCounts.of(self.snapshot_of(experiment).cells)  # from the cache; completes an interrupted apply
        return count_cells(self.store, experiment)

    def rubric_for(self, snapshot: Snapshot) -> Rubric:
        """Return the rubric of the suite that was named or collected with, else the one in the snapshot."""
        return self.suite.rubric if self._named_suite or self._suite else rubric_of(snapshot)

    # Publishing to MLflow's pages

    def publish(self) -> "Published":
        """Bring MLflow's prompts, traces, dataset and assessments up to date with what counts on the leaderboard.

        Cells with texts in a batch that is open are left out. It can be called again at any time, and after a kill.
        """
        from tipbench.bench.publish.publish import publish

        with self._exclusive_publishing():
            snapshot = self.snapshot()
            published = publish(
                self.store, snapshot, rubric_of(snapshot), self._suite_for_prompts(), self.context.observer.published
            )
        for line in published.notes:
            self._note(line)
        return published

    def _suite_for_prompts(self) -> "Suite | None":
        """Return the suite that was named or that the experiment was collected with; None if it is not here."""
        from tipbench.bench.judge.export import suite_here
        from tipbench.bench.suites.load import load_suite

        if self._named_suite or self._suite:
            return self.suite
        source = suite_here(self.experiment, self.context.settings)
        try:
            return load_suite(source) if source else None
        except SuiteError:  # its prompts can't be registered; everything else can be published
            return None

    @contextmanager
    def _exclusive_publishing(self) -> Iterator[None]:
        from tipbench.core.locks import exclusive
        from tipbench.core.paths import lock_path

        name = self.options.experiment
        path = lock_path(self.context.settings.home, "publish", self.store.address, name)
        with exclusive(
            path, f"another process is publishing '{name}'", wait=True, notify=self.context.observer.waiting
        ):
            yield

    # The experiment and its parts

    @property
    def store(self) -> RunStore:
        """The store, opened on first use. Raises NothingStored if it is a database file that does not exist yet."""
        return self._open_store()

    @property
    def experiment(self) -> Experiment:
        """The experiment as it is stored now. Raises InvalidInput if it does not exist."""
        return self.store.experiment(self.options.experiment)

    @property
    def suite(self) -> "Suite":
        if self._suite is None:
            from tipbench.bench.suites.load import load_suite

            self._suite = load_suite(self.options.suite, self.context.settings)
        return self._suite

    @cached_property
    def rubric(self) -> Rubric:
        """The rubric for judging: that of the suite that was named or collected with, else the experiment's own."""
        from tipbench.bench.report import current_rubric

        if self._named_suite or self._suite:
            return self.suite.rubric
        return current_rubric(self.store, self.experiment)

    @cached_property
    def anchors(self) -> "tuple[GoldItem, ...]":
        """Anchors for batches: the suite's, and a team's own."""
        from tipbench.bench.judge.export import gold_items

        named = str(self._suite.folder) if self._suite else self._named_suite
        return gold_items(self.experiment, self.rubric, named, self.context.settings, self.context.observer.note)

    @property
    def now_ms(self) -> int:
        return round(self.context.clock() * 1000)

    def experiments(self) -> list[Experiment]:
        """Return all tipbench experiments of the store, oldest first."""
        return [found for found in self.store.experiments("") if "tipbench.suite" in found.tags]

    def delete(self) -> None:
        """Delete the experiment; MLflow only marks it as deleted, and `restore` undoes that.

        What was published to MLflow's pages is removed for good; after `restore`, `publish` brings it back.
        """
        from tipbench.bench.publish.publish import take_back

        self.check_own()
        with self._exclusive_publishing():
            take_back(self.store, self.experiment)
            self.store.delete_experiment(self.experiment)

    def restore(self) -> None:
        self.store.restore_experiment(self.options.experiment)

    def check_own(self) -> None:
        """Raise InvalidInput if the experiment holds runs that are not tipbench's."""
        _check_own(self.store, self.experiment)

    def create_store(self) -> None:
        """Open the store; a database file that does not exist yet is created."""
        self._open_store(create=True)

    def _open_store(self, create: bool = False) -> RunStore:
        if self._store is None:
            experiment = self.options.experiment if self._named or create else None
            opened = open_store(self.options.mlflow_url, self.context.settings, experiment, create)
            self._store = opened.store
            if opened.notice:
                self._note(opened.notice)
        return self._store

    def set_options(self, **options: Any) -> "Suite":
        """Update the options, load the suite and apply its defaults; return it. `collect` and `plan` call this."""
        from tipbench.bench.suites.load import load_suite

        self.given_options |= options
        if options:
            self.options = make_options(self.given_options)
        self._suite = load_suite(self.options.suite, self.context.settings)
        self.options = self._suite.apply_defaults(self.options)
        self.__dict__.pop("rubric", None)
        self.__dict__.pop("anchors", None)
        return self._suite

    def _note(self, text: str) -> None:
        self.context.observer.note(text)


def _check_own(store: RunStore, experiment: Experiment) -> None:
    """Raise InvalidInput if the experiment holds runs that are not tipbench's."""
    foreign = store.foreign_runs(experiment)
    if foreign:
        raise InvalidInput(
            f"experiment '{experiment.name}' holds {foreign} runs that tipbench did not make; it was left unchanged"
        )


def _score(judge: "Judge", file: dict[str, Any]) -> dict[str, Any]:
    """Have the judge fill in the batch's file; raise JudgeFailed if it returns another batch."""
    from tipbench.core.errors import JudgeFailed

    scored = judge.score(file)
    if scored.get("format") != file["format"] or scored.get("batch") != file["batch"]:
        raise JudgeFailed(f"the answer of judge '{judge.identity.name}' is not for the batch that it was given")
    return scored
