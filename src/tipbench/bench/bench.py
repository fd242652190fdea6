"""The bench: collect, judge and compare an experiment. The command line, the DAG and notebooks call the same methods.

    with Bench("tip-bench-first", suite="tip") as bench:
        bench.collect(models="qwen2.5:0.5b,gemma3:1b", prompts="v1,v3-few-shot", n_tips=5)
        bench.export("judge.json", judge="lena")
        bench.apply("judge.json")
        board = bench.compare()

What only some methods need is imported in them: comparing does without engines, collecting without numpy.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from tipbench.bench.tracking.address import open_store, remember
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import SUPERSEDED, each_cell, stored_runs, supersede_later
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import EngineError, InvalidInput, NothingStored, ScoresRefused
from tipbench.core.paths import journal_folder, judged_folder, snapshot_folder
from tipbench.core.settings import Settings
from tipbench.core.version import __version__

if TYPE_CHECKING:
    from pandas import DataFrame

    from tipbench.bench.collect.delivery import Delivered, Synced
    from tipbench.bench.collect.plan import Collected, Plan
    from tipbench.bench.compare.html.page import Report
    from tipbench.bench.compare.leaderboard import Leaderboard
    from tipbench.bench.engines.catalog import Engines
    from tipbench.bench.judge.apply import Applied, ApplyOptions
    from tipbench.bench.judge.export import Exported
    from tipbench.bench.judge.judges.interface import Judge, JudgeName
    from tipbench.bench.judge.sample import BatchSize
    from tipbench.bench.judge.status import JudgeStatus
    from tipbench.bench.records import GoldItem
    from tipbench.bench.suites.suite import Suite

_REFUSED_SCORES = "judged.json"  # in a batch's run: what a judge gave that could not be applied


class Bench:
    """One experiment. Close it, or use it in a `with` statement. Methods raise errors of `tipbench.core.errors`.

    The options are those of the configuration table: suite, models, prompts, n_tips, mlflow_url, seed and so on.
    """

    def __init__(self, experiment: str | None = None, *, context: Context | None = None, **options: Any) -> None:
        """Raise InvalidInput with every problem of the options; nothing is opened yet."""
        given = options if experiment is None else {**options, "experiment": experiment}
        self._begin(make_options(given), context or Context(), experiment is not None)

    @classmethod
    def of(cls, options: Options, context: Context | None = None) -> "Bench":
        """A bench for options that are checked already."""
        bench = cls.__new__(cls)
        bench._begin(options, context or Context(), named=True)
        return bench

    def _begin(self, options: Options, context: Context, named: bool) -> None:
        self.options = options
        self.context = context
        self._named = named
        self._named_suite = options.suite if "suite" in options.model_fields_set else None
        self._suite: Suite | None = None
        self._store: RunStore | None = context.store

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, kind: type[BaseException] | None, _error: BaseException | None, _: TracebackType | None) -> None:
        if kind is None and self._store and self._store.files_refused:
            self._note(f"Texts were stored as tags, because files were refused: {self._store.files_refused}")
        self.close()

    def close(self) -> None:
        """Close the store, unless it was passed in."""
        if self._store and self._store is not self.context.store:
            self._store.close()
        self._store = self.context.store

    # Collecting

    def plan(self, *, retry_failed: bool = False, **options: Any) -> "Plan":
        """What `collect` would generate, without generating or storing anything."""
        from tipbench.bench.engines.catalog import open_engines

        suite = self.fit(**options)
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
        **options: Any,
    ) -> "Collected":
        """Generate and store every cell that is missing: (model × prompt × scenario), as often as the options say.

        `retry_failed` tries cells again that failed before; `fresh` sets aside what is stored of this grid. Without
        `wait`, LockTaken is raised while another process collects this experiment or uses the same engine.
        """
        from tipbench.bench.collect.loop import exclusive_collection
        from tipbench.bench.engines.catalog import open_engines

        suite, settings, observer = self.fit(**options), self.context.settings, self.context.observer
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
                    self._note(f"{count} stored cells are set aside: they stay in MLflow, tagged tipbench.superseded.")
                plan = self._plan(suite, models, retry_failed, store)
                if share is None:
                    remember(settings, self.options.experiment, store.address, str(suite.folder))
                return self._generate(suite, plan, engines, keep_up=share is not None)

    def start_over(self, models: Sequence[ModelInfo], before_ms: int | None = None) -> int:
        """Set the stored runs of this grid aside, scores and all; they stay in MLflow and count no more.

        `before_ms`: only those that are older, so that starting over can be repeated halfway. Returns how many.
        """
        from tipbench.bench.collect.grid import Grid

        experiment = self.store.find_experiment(self.options.experiment)
        if experiment is None:
            return 0
        keys = {cell.key for cell in Grid(self.options, self.suite, models)}
        aside = [
            run
            for run in stored_runs(self.store, experiment)
            if run.tags["tipbench.cell_key"] in keys and (before_ms is None or run.started_ms < before_ms)
        ]
        with self.store.session():
            for run in aside:
                self.store.extend_run(run, {SUPERSEDED: "true", "judge_pending": "false"}, at_ms=self.now_ms)
        return len(aside)

    def missing_cells(self, models: Sequence[ModelInfo], retry_failed: bool = False) -> "Plan":
        """The cells of these models that are missing; raises InvalidInput for an experiment of somebody else."""
        return self._plan(self.suite, models, retry_failed, self.store)

    def _admit(self, suite: "Suite", engines: "Engines") -> list[ModelInfo]:
        """Check everything that can be wrong with a request, before a store is touched or anything is generated."""
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

    def _plan(self, suite: "Suite", models: Sequence[ModelInfo], retry_failed: bool, store: RunStore | None) -> "Plan":
        """The cells that are still missing from the experiment; without a store, all of them."""
        from tipbench.bench.collect.grid import Grid
        from tipbench.bench.collect.plan import make_plan

        name = self.options.experiment
        experiment = store.find_experiment(name) if store else None
        if store and experiment:
            _check_own(store, experiment)
        of_suite = experiment.tags.get("tipbench.suite", suite.name) if experiment else suite.name
        if of_suite != suite.name:
            raise InvalidInput(
                f"experiment '{name}' belongs to suite '{of_suite}', not '{suite.name}'; give this one a name of its "
                f"own, such as --experiment {suite.experiment_prefix}1"
            )
        stored = each_cell(store, experiment) if store and experiment else ()
        return make_plan(models, Grid(self.options, suite, models), stored, retry_failed)

    def _deliver_left_behind(self) -> None:
        """Store what an earlier collection of this experiment generated and could not deliver."""
        from tipbench.bench.collect.delivery import deliver_left_behind
        from tipbench.bench.collect.journal import left_behind

        journals = journal_folder(self.context.settings.home)
        found = left_behind(journals, self.store.address, self.options.experiment)
        delivered: Delivered = deliver_left_behind(found, self.store)
        if delivered.cells:
            self._note(f"{delivered.cells} cells that an earlier run generated and could not store are in MLflow now.")

    def _generate(self, suite: "Suite", plan: "Plan", engines: "Engines", keep_up: bool) -> "Collected":
        """Generate and store every cell of the plan.

        With `keep_up` the next cell waits until MLflow has the one before: this machine's disk may not be there later.
        """
        from tipbench.bench.collect.delivery import delivering
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
            with delivering(journal, store, experiment, keep_up) as keeper, MemoryWatch() as watch:
                for outcome in collect(
                    plan.to_do, engines.of, suite, keeper.keep, watch, context.clock, self.options.concurrency
                ):
                    collected.count(outcome)
                    context.observer.done(outcome)
        except EngineError:
            self._note("What was done is stored; the same command goes on from there.")
            raise
        collected.undelivered, collected.outages = keeper.undelivered, keeper.delivered.outages
        if store.is_shared and not collected.undelivered:
            collected.superseded = supersede_later(store, experiment())
        collected.seconds = context.clock() - started
        return collected

    @staticmethod
    def sync(settings: Settings | None = None) -> "Iterator[Synced]":
        """Deliver everything that was generated while MLflow was away, to wherever each collection was going."""
        from tipbench.bench.collect.delivery import deliver_all

        return deliver_all(settings or Settings())

    # Judging

    def pending(self, judge: str | None = None) -> int:
        """How many cells wait for this judge; without one, for any judge that counts."""
        from tipbench.bench.judge.export import waiting_runs

        return len(waiting_runs(stored_runs(self.store, self.experiment), judge, self.rubric))

    def export(self, path: str | Path, judge: str = "person", size: "BatchSize | None" = None) -> "Exported":
        """Write what waits for this judge to a file, with anchors and repeats among it, and its schema beside it."""
        from tipbench.bench.judge.file import check_export_path, schema, schema_path
        from tipbench.bench.judge.judges.catalog import person
        from tipbench.core.files import write_user_file
        from tipbench.core.untrusted import json_text

        path = Path(path)
        check_export_path(path)
        exported = self.new_batch(person(judge), size, keep_file=True)
        write_user_file(schema_path(path), json_text(schema(self.rubric, exported.items)))
        write_user_file(path, json_text({"$schema": f"./{schema_path(path).name}", **exported.file}))
        return exported

    def new_batch(self, judge: "JudgeName", size: "BatchSize | None" = None, keep_file: bool = False) -> "Exported":
        """Record a batch of what waits for this judge; `keep_file`: in MLflow too, for a judge who comes for it later.

        Raises NothingPending if nothing waits.
        """
        from tipbench.bench.judge.export import export_batch
        from tipbench.bench.judge.sample import WHAT_FITS

        context = self.context
        return export_batch(
            self.store,
            self.experiment,
            self.rubric,
            judge,
            self.options.seed,
            context.new_id,
            self.now_ms,
            size or WHAT_FITS,
            self.anchors,
            keep_file,
        )

    def apply(self, scores: str | Path | Mapping[str, Any], how: "ApplyOptions | None" = None) -> "Applied":
        """Check a filled-in judge file and write its scores back, all or nothing. Processes do it one after the other.

        Raises JudgeFileError with every problem of the file.
        """
        from tipbench.bench.judge.apply import AS_IT_IS, apply_file
        from tipbench.bench.judge.export import exclusive_judging
        from tipbench.bench.judge.verify import read_judge_file

        experiment, anchors, settings = self.experiment, self.anchors, self.context.settings
        with exclusive_judging(self.store.address, experiment.name, settings, self.context.observer.waiting):
            data = dict(scores) if isinstance(scores, Mapping) else read_judge_file(Path(scores))
            return apply_file(self.store, experiment, data, self.now_ms, how or AS_IT_IS, anchors)

    def judge(
        self,
        name: "str | Judge",
        identity: str | None = None,
        size: "BatchSize | None" = None,
        how: "ApplyOptions | None" = None,
    ) -> "Applied":
        """Have a judge that runs by itself (lexical, command, webhook, model) score what waits for it, and apply that.

        It may also be an object with an `identity` and a method `score`, which fills in a judge file.

        Raises NothingPending if nothing waits, JudgeLater if it answers some other time, JudgeFailed if it fails.
        """
        from tipbench.bench.judge.sample import EVERYTHING

        with self.open_judge(name, identity) as judge:
            exported = self.new_batch(judge.identity, size or EVERYTHING)
            scored = _score(judge, exported.file)
            return self._apply_judged(scored, how)

    def judge_batch(self, name: str, run: StoredRun) -> "Applied":
        """Have a judge that runs by itself score a batch whose file is in MLflow, and apply that."""
        from tipbench.bench.tracking.batches import batch_file

        with self.open_judge(name) as judge:
            scored = _score(judge, batch_file(self.store, run))
        return self._apply_judged(scored, batch_run=run)

    @contextmanager
    def open_judge(self, name: "str | Judge", identity: str | None = None) -> Iterator["Judge"]:
        """A judge that runs by itself, with what it needs for as long as it judges."""
        from tipbench.bench.judge.judges.open_judge import open_judge

        if not isinstance(name, str):
            yield name
            return
        context = self.context
        with open_judge(
            name,
            self.rubric,
            self.options,
            self.store,
            context.settings,
            context.clock,
            context.observer.note,
            identity,
        ) as judge:
            yield judge

    def status(self) -> "tuple[JudgeStatus, dict[tuple[str, int], str]]":
        """The judges, their drift over time and how far they agree; with the texts of what they disagree on most."""
        from tipbench.bench.report import status_of_judges

        return status_of_judges(self.store, self.experiment, self.rubric)

    def _apply_judged(
        self, scored: dict[str, Any], how: "ApplyOptions | None" = None, batch_run: StoredRun | None = None
    ) -> "Applied":
        """Apply what a judge gave; it is kept until then: hours of work are not lost to an item that is missing."""
        from tipbench.core.files import make_private_folder, write_user_file
        from tipbench.core.untrusted import json_text

        kept = judged_folder(self.context.settings.home) / f"{scored['batch']}.json"
        make_private_folder(kept.parent)
        write_user_file(kept, json_text(scored))
        try:
            applied = self.apply(scored, how)
        except InvalidInput as error:
            if batch_run is None:
                where = f"{kept}: --apply it, with --partial if need be"
            else:  # this machine's disk may not be there later
                texts = {_REFUSED_SCORES: json_text(scored)}
                self.store.extend_run(batch_run, {}, new_texts=texts, at_ms=self.now_ms)
                where = f"MLflow, {_REFUSED_SCORES} of run {batch_run.run_id}: mend it and --apply it"
            raise ScoresRefused(f"{error}\nWhat the judge gave is kept in {where}") from error
        kept.unlink(missing_ok=True)
        return applied

    # Comparing

    def compare(self, refresh: bool = False) -> "Leaderboard":
        """The leaderboard per (model, prompt). `refresh` reads everything again, whatever is cached."""
        from tipbench.bench.compare.leaderboard import leaderboard_of  # brings numpy

        snapshot = self.snapshot(refresh)
        return leaderboard_of(snapshot, self.rubric_for(snapshot))

    def report(self) -> "Report":
        """The leaderboard with what stands behind it: judges, drift, example texts. `as_html` makes a page of it."""
        from tipbench.bench.compare.leaderboard import leaderboard_of
        from tipbench.bench.report import make_report
        from tipbench.core.text import utc_minute

        snapshot = self.snapshot()
        rubric = self.rubric_for(snapshot)
        board = leaderboard_of(snapshot, rubric)
        return make_report(self.store, snapshot, rubric, board, utc_minute(self.context.clock() * 1000))

    def scores(self) -> "DataFrame":
        """Every single score, and each cell's as it counts (kind = cell), as `compare --scores` writes them.

        Raises MissingExtra where pandas is not installed.
        """
        from tipbench.bench.compare.scores import all_scores, frame_of

        snapshot = self.snapshot()
        return frame_of(all_scores(self.store, snapshot, self.rubric_for(snapshot)))

    def snapshot(self, refresh: bool = False) -> Snapshot:
        """All that comparing reads of the experiment; what was cached counts as long as nothing was written since."""
        return self.snapshot_of(self.experiment, refresh)

    def snapshot_of(self, experiment: Experiment, refresh: bool = False) -> Snapshot:
        """The same of any experiment of the store that was found just now."""
        folder = snapshot_folder(self.context.settings.home)
        return load_snapshot(self.store, experiment, folder, refresh, self.context.clock, finish_applying)

    def rubric_for(self, snapshot: Snapshot) -> Rubric:
        """The rubric of the suite that was named or collected with, else the one stored with the experiment."""
        return self.suite.rubric if self._named_suite or self._suite else rubric_of(snapshot)

    # What the experiment consists of

    @property
    def store(self) -> RunStore:
        """The open store. Raises NothingStored if it is a database file that does not exist yet."""
        return self._open_store()

    @property
    def experiment(self) -> Experiment:
        """The experiment as it is stored now. Raises InvalidInput if it is not there."""
        return self.store.experiment(self.options.experiment)

    @property
    def suite(self) -> "Suite":
        if self._suite is None:
            from tipbench.bench.suites.load import load_suite

            self._suite = load_suite(self.options.suite)
        return self._suite

    @cached_property
    def rubric(self) -> Rubric:
        """By which judges judge: the suite's where one was named or collected with, else the experiment's own."""
        from tipbench.bench.report import current_rubric

        if self._named_suite or self._suite:
            return self.suite.rubric
        return current_rubric(self.store, self.experiment)

    @cached_property
    def anchors(self) -> "tuple[GoldItem, ...]":
        """Texts with known scores, for batches: the suite's, and a team's own."""
        from tipbench.bench.judge.export import gold_items

        named = str(self._suite.folder) if self._suite else self._named_suite
        return gold_items(self.experiment, self.rubric, named, self.context.settings, self.context.observer.note)

    @property
    def now_ms(self) -> int:
        return round(self.context.clock() * 1000)

    def experiments(self) -> list[Experiment]:
        """All experiments of the store that hold cells of ours, oldest first."""
        return [one for one in self.store.experiments("") if "tipbench.suite" in one.tags]

    def delete(self) -> None:
        """Delete the experiment; MLflow keeps it aside, and `restore` brings it back."""
        self.check_own()
        self.store.delete_experiment(self.experiment)

    def restore(self) -> None:
        self.store.restore_experiment(self.options.experiment)

    def check_own(self) -> None:
        """Raise InvalidInput if the experiment holds runs that are not tipbench's."""
        _check_own(self.store, self.experiment)

    def _open_store(self, create: bool = False) -> RunStore:
        if self._store is None:
            experiment = self.options.experiment if self._named or create else None
            opened = open_store(self.options.mlflow_url, self.context.settings, experiment, create)
            self._store = opened.store
            if opened.notice:
                self._note(opened.notice)
        return self._store

    def fit(self, **options: Any) -> "Suite":
        """Take over these options, and the suite's defaults for what was not given; `collect` and `plan` do it."""
        from tipbench.bench.suites.load import load_suite

        if options:
            given = {key: getattr(self.options, key) for key in self.options.model_fields_set}
            self.options = make_options({**given, **options})
        self._suite = load_suite(self.options.suite)
        self.options = self._suite.fit(self.options)
        self.__dict__.pop("rubric", None)
        self.__dict__.pop("anchors", None)
        return self._suite

    def _note(self, text: str) -> None:
        self.context.observer.note(text)


def _check_own(store: RunStore, experiment: Experiment) -> None:
    """tipbench keeps out of experiments that belong to somebody else."""
    foreign = store.foreign_runs(experiment)
    if foreign:
        raise InvalidInput(
            f"experiment '{experiment.name}' holds {foreign} runs that are not tipbench's; it was left as it is"
        )


def _score(judge: "Judge", file: dict[str, Any]) -> dict[str, Any]:
    """The batch's file as the judge filled it in."""
    from tipbench.core.errors import JudgeFailed

    scored = judge.score(file)
    if scored.get("format") != file["format"] or scored.get("batch") != file["batch"]:
        raise JudgeFailed(f"what the judge '{judge.identity.name}' gave back is not the batch that it was given")
    return scored
