"""Exports pending candidates, anchors and repeats as a batch, shuffled and indistinguishable from each other."""

import os
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tipbench.bench.judge.drift import is_new
from tipbench.bench.judge.file import SLOT_LENGTH, SLOT_LETTERS, BatchItem, judge_file
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.sample import (
    FIRST_BATCH,
    BatchSize,
    Mix,
    Redactor,
    anchors_for,
    fitting_mix,
    mix_around,
    repeats_for,
    sample_candidates,
    take_layers,
)
from tipbench.bench.judge.settle import finish_applying
from tipbench.bench.records import Batch, GoldItem, Slot, StoredCell
from tipbench.bench.suites.anchors import ENOUGH_ANCHORS, read_private_anchors
from tipbench.bench.suites.load import built_in_suites, load_suite
from tipbench.bench.suites.registered import registered_suites
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.address import remembered_suite
from tipbench.bench.tracking.batches import (
    BATCH,
    FILE,
    JOB,
    AppliedBatch,
    applied_batches,
    exported_to,
    open_batches,
    read_batch,
    write_batch,
)
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import KIND, JudgedSoFar, judged_so_far, stored_candidates, stored_cell, stored_runs
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import NothingPending, SuiteError
from tipbench.core.identity import text_digest
from tipbench.core.locks import exclusive
from tipbench.core.paths import lock_path
from tipbench.core.settings import Settings
from tipbench.core.text import counted, utc_minute

# Who fills in a batch. A program's file is not stored in MLflow; one that a job of the server wrote may be for nobody.
StoredFor = Literal["program", "page", "file", "job"]
DEFAULT_SIZE = BatchSize()
# What of runs no batch is made of, by how its key begins: a third of what is stored.
_NOT_JUDGED = (
    *("mlflow.", "gen/", "ram/"),
    *(f"{kind}:{name}" for kind in ("artifact", "tipbench.text") for name in ("prompt.txt", "raw.txt", "rubric.md")),
)


# Locking: processes apply scores to an experiment one after the other


@contextmanager
def exclusive_judging(address: str, experiment: str, settings: Settings, say: Callable[[str], None]) -> Iterator[None]:
    path = lock_path(settings.home, "judge", address, experiment)
    with exclusive(path, f"another process is writing scores into '{experiment}'", wait=True, notify=say):
        yield


# Pending runs


def pending_runs(runs: Iterable[StoredRun], judge: str, rubric: Rubric) -> list[StoredRun]:
    """Return the runs that this judge has not scored by this rubric; scores in quarantine don't count as scored."""
    return [run for run in runs if awaits(judged_so_far(run), judge, rubric.digest)]


def waiting_runs(runs: Iterable[StoredRun], judge: str | None, rubric: Rubric) -> list[StoredRun]:
    """Return the runs that are pending for this judge; without one, for any judge that counts."""
    if judge is None:
        return [run for run in runs if stored_cell(run).awaits_judge(rubric.digest)]
    return pending_runs(runs, judge, rubric)


def awaits(cell: StoredCell | JudgedSoFar, judge: str, rubric_digest: str) -> bool:
    if not cell.candidates:
        return False
    return not any(
        note.judge == judge and note.rubric_digest == rubric_digest and (note.counted or note.provisional)
        for note in cell.judges
    )


def judge_batches(store: RunStore, experiment: Experiment, judge: str, rubric: Rubric) -> list[AppliedBatch]:
    """Return the batches that this judge scored by this rubric, in the order in which they were applied."""
    return applied_batches(store, store.runs(experiment, {KIND: BATCH, "tipbench.judge": judge}), rubric.digest)


@dataclass(frozen=True)
class Exported:
    """A batch's file, and what it contains."""

    file: dict[str, Any]
    candidates: int
    anchors: int
    repeats: int
    sample: int  # maximum candidates per cell
    left_out: int  # pending candidates that are not in the batch: not sampled, or over the limit
    notes: tuple[str, ...] = ()  # about the judge's files that are still open

    @property
    def items(self) -> int:
        return self.candidates + self.anchors + self.repeats


def export_batch(
    store: RunStore,
    experiment: Experiment,
    rubric: Rubric,
    judge: JudgeName,
    seed: int,
    new_id: Callable[[], str],
    now_ms: int,
    size: BatchSize = DEFAULT_SIZE,
    gold: Sequence[GoldItem] = (),
    stored_for: StoredFor = "program",
) -> Exported:
    """Record a batch in MLflow and return its judge file; raise NothingPending if there is nothing to judge.

    For a page or a file it is stored in MLflow too, so that it can be judged in the browser.
    """
    finish_applying(store, experiment, now_ms)  # otherwise judged candidates would be exported again
    batch_id, secret = new_id(), new_id()
    rng = random.Random(f"{seed}/{secret}")
    runs = stored_runs(store, experiment, _NOT_JUDGED)
    redactor = Redactor({run.params["model"] for run in runs}, {run.params["prompt"] for run in runs})

    def is_blind(text: str) -> bool:
        return redactor.redact(text) == text

    before = judge_batches(store, experiment, judge.name, rubric)
    judged = _judged_candidates(before)
    waiting = _waiting(runs, judge.name, rubric, judged, size.sample)
    open_files = _open_files(store, experiment, judge.name, waiting) if stored_for != "program" else ()
    in_files = {slot.run_id for file in open_files for slot in file.slots}
    # What the judge has in a file is offered again only when nothing else is left: the file may be lost.
    offered = [run for run in waiting if run.run_id not in in_files] or waiting
    if size.only:
        wanted = {run_id for run_id, _ in size.only}
        offered = [run for run in runs if run.run_id in wanted]
    pending = {run.tags["tipbench.cell_key"]: _PendingCell(store, run, rubric, redactor) for run in offered}
    if not pending:
        raise NothingPending(_nothing_pending(experiment.name, judge.name, runs, judged, size.sample), judge.name)
    usable = [anchor for anchor in gold if is_blind(anchor.candidate) and judge.name not in anchor.by]
    new = is_new(before)
    chosen = {
        key: [
            (layer, cell.item(number))
            for layer, number in enumerate(sample_candidates(key, seed, cell.candidates, size.sample))
            if (cell.run_id, number) not in judged
        ]
        for key, cell in pending.items()
    }
    mix = _mix(size, sum(map(len, chosen.values())), new, len(usable))
    if size.only:
        candidates = [
            cell.item(number)
            for cell in pending.values()
            for number in range(cell.candidates)
            if (cell.run_id, number) in size.only
        ]
    else:
        unjudged = [run for run in offered if stored_cell(run).awaits_judge(rubric.digest)] if mix else []
        first = {run.tags["tipbench.cell_key"] for run in unjudged}
        candidates = take_layers(rng, chosen, mix.candidates if mix else size.limit, first)
    mix = mix or Mix(len(candidates), anchors_for(len(candidates)), repeats_for(len(candidates)))
    scored = {slot.of for batch in before for slot in batch.batch.slots if slot.kind == "anchor"}
    anchors = _anchors(rng, rubric, candidates, _by_preference(rng, usable, candidates, scored)[: mix.anchors])
    repeated = min(mix.repeats, len(candidates))
    names = _slot_names(rng, len(candidates) + len(anchors) + repeated)
    items = [item._replace(slot=replace(item.slot, slot=name)) for item, name in zip(candidates, names, strict=False)]
    repeats = [_repeat_of(item) for item in rng.sample(items, repeated)]
    others = [
        item._replace(slot=replace(item.slot, slot=name))
        for item, name in zip([*anchors, *repeats], names[len(candidates) :], strict=True)
    ]
    shuffled = [*items, *others]
    rng.shuffle(shuffled)
    if size.only and new:
        shuffled = _anchors_first(rng, shuffled)
    batch = Batch(
        id=batch_id,
        judge=judge.name,
        provisional=judge.provisional,
        seed=seed,
        rubric_digest=rubric.digest,
        created_ms=now_ms,
        secret=secret,
        slots=tuple(item.slot for item in shuffled),
        judge_kind=judge.kind,
    )
    file = judge_file(batch, rubric, shuffled)
    kept = file if stored_for != "program" else None
    exported = stored_for if stored_for in (FILE, JOB) else ""
    write_batch(store, experiment, batch, rubric.name, rubric.text, kept, exported, size.decision)
    left_out = sum(cell.candidates for cell in pending.values()) - len(candidates)
    notes = _open_file_notes(open_files, offered_again=offered is waiting)
    return Exported(file, len(candidates), len(anchors), len(repeats), size.sample, left_out, notes)


def _judged_candidates(batches: Iterable[AppliedBatch]) -> set[tuple[str, int]]:
    """Return the candidates (run and number) that the judge has scored in batches that count or are provisional."""
    return {
        (verdict.slot.run_id, verdict.slot.candidate)
        for batch in batches
        if batch.counted or batch.batch.provisional
        for verdict in batch.verdicts
        if verdict.slot.kind == "candidate"
    }


def _waiting(
    runs: Sequence[StoredRun], judge: str, rubric: Rubric, judged: Collection[tuple[str, int]], sample: int
) -> list[StoredRun]:
    """Return the runs that the judge has not scored, or of which fewer candidates than the sample are scored."""
    scored = Counter(run_id for run_id, _ in judged)
    return [
        run
        for run in runs
        if awaits(cell := judged_so_far(run), judge, rubric.digest)
        or 0 < scored[run.run_id] < min(sample, cell.candidates)
    ]


def _nothing_pending(
    experiment: str, judge: str, runs: Sequence[StoredRun], judged: Collection[tuple[str, int]], sample: int
) -> str:
    more = any(stored_cell(run).candidates > sample for run in runs if any(run.run_id == one for one, _ in judged))
    instead = f"; --sample {sample + 1} takes one more candidate of each cell" if more else ""
    return (
        f"nothing in experiment '{experiment}' waits for judge '{judge}'{instead}; "
        f"'tipbench compare --experiment {experiment}' shows where it stands"
    )


def _mix(size: BatchSize, waiting: int, new: bool, usable_anchors: int) -> Mix | None:
    """Return what a batch of so many items consists of; None if its size is given otherwise."""
    if size.only:
        return mix_around(len(size.only), new, usable_anchors)
    if size.items is None:
        return None
    return fitting_mix(size.items, min(waiting, size.limit or waiting), new, usable_anchors)


def _open_files(store: RunStore, experiment: Experiment, judge: str, waiting: Sequence[StoredRun]) -> tuple[Batch, ...]:
    """Return the judge's batches that were exported to files and can still be applied."""
    batches = [read_batch(store, run) for run in open_batches(store, experiment, judge) if exported_to(run) == FILE]
    run_ids = {run.run_id for run in waiting}
    return tuple(one for one in batches if {slot.run_id for slot in one.slots if slot.run_id} <= run_ids)


def _open_file_notes(files: Sequence[Batch], offered_again: bool) -> tuple[str, ...]:
    if offered_again:
        rest = "Its texts are in the new batch too, because nothing else waits: apply only one of them."
    else:
        rest = "Its texts are not in the new batch."
    return tuple(
        f"An earlier file for judge '{one.judge}' is still open: {counted(len(one.slots), 'item')}, exported on "
        f"{utc_minute(one.created_ms)}. {rest}"
        for one in files
    )


class _PendingCell:
    """A pending cell's candidates, each made an item of a batch only when it is wanted."""

    def __init__(self, store: RunStore, run: StoredRun, rubric: Rubric, redactor: Redactor) -> None:
        self.run_id = run.run_id
        self._stored = stored_candidates(store, run)
        self._rubric = rubric
        self._redactor = redactor

    @property
    def candidates(self) -> int:
        return len(self._stored.texts)

    def item(self, number: int) -> BatchItem:
        stored = self._stored
        written = stored.texts[number]
        text = self._redactor.redact(written)
        flags = self._rubric.checked_flags(written, stored.format_ok, stored.scenario_id)
        slot = Slot("", self.run_id, number, text_digest(text), text_digest(stored.scenario), flags)
        return BatchItem(slot, stored.scenario, text)


def _by_preference(
    rng: random.Random, gold: Sequence[GoldItem], candidates: Sequence[BatchItem], scored: set[str]
) -> list[GoldItem]:
    """Return the anchors in random order, preferring a team's own, unseen ones, and those of the batch's scenarios."""
    scenarios = {item.scenario for item in candidates}
    order = list(gold)
    rng.shuffle(order)
    return sorted(order, key=lambda one: (not one.private, one.id in scored, one.scenario not in scenarios))


def _anchors(
    rng: random.Random, rubric: Rubric, candidates: Sequence[BatchItem], gold: Iterable[GoldItem]
) -> list[BatchItem]:
    """Return the anchors as items of the batch.

    An anchor has no answer around it, so its "contract" flag is copied from a random candidate of the batch.
    """
    contract = next((name for name, flag in rubric.flags.items() if flag.check == "contract"), "")
    items = []
    for anchor in gold:
        borrowed = rng.choice(candidates).slot.flags
        flags = rubric.checked_flags(anchor.candidate, borrowed.get(contract, True), anchor.scenario_id)
        slot = Slot(
            "",
            "",
            0,
            text_digest(anchor.candidate),
            text_digest(anchor.scenario),
            flags,
            "anchor",
            anchor.id,
            {} if anchor.private else anchor.scores,
        )
        items.append(BatchItem(slot, anchor.scenario, anchor.candidate))
    return items


def _anchors_first(rng: random.Random, items: Sequence[BatchItem]) -> list[BatchItem]:
    """Return the items with enough anchors to assess a new judge among the first ones, however long the batch is."""
    early = [item for item in items if item.slot.kind == "anchor"][:ENOUGH_ANCHORS]
    slots = {item.slot.slot for item in early}
    rest = [item for item in items if item.slot.slot not in slots]
    room = FIRST_BATCH - len(early)
    first = [*early, *rest[:room]]
    rng.shuffle(first)
    return [*first, *rest[room:]]


def _repeat_of(item: BatchItem) -> BatchItem:
    return item._replace(slot=replace(item.slot, slot="", kind="repeat", of=item.slot.slot))


def _slot_names(rng: random.Random, count: int) -> list[str]:
    names: dict[str, None] = {}
    while len(names) < count:
        names["".join(rng.choices(SLOT_LETTERS, k=SLOT_LENGTH))] = None
    return list(names)


# Anchors for an experiment's batches: those of its suite, and a team's own


def suite_here(experiment: Experiment, settings: Settings) -> str | None:
    """Return the folder or the name of the experiment's suite on this machine; None if it is not here."""
    name = experiment.tags.get("tipbench.suite", "")
    remembered = remembered_suite(settings, experiment.name)
    if remembered and Path(remembered).is_dir():
        return remembered
    is_here = name in built_in_suites() or (name and registered_suites(settings).get(name, Path(name)).is_dir())
    return name if is_here else None


def gold_items(
    experiment: Experiment, rubric: Rubric, suite: str | None, settings: Settings, say: Callable[[str], None]
) -> tuple[GoldItem, ...]:
    """Return the anchors that fit the rubric; if there are none, report why through `say`."""
    own = settings.get("TIPBENCH_ANCHORS")
    name = experiment.tags.get("tipbench.suite", "")
    named = suite or suite_here(experiment, settings)
    if named is None:
        say(f"The suite '{name}' is not on this machine, so there are no anchors; --suite FOLDER says where it is.")
        return ()
    try:
        loaded = load_suite(named, settings)
    except SuiteError as error:
        say(f"The suite '{name}' can't be read now, so its anchors are left out: {error.headline} {error.problems[0]}")
        return ()
    if loaded.rubric.digest != rubric.digest:
        say(f"The anchors of suite '{loaded.name}' are for another rubric than the experiment's, and are left out.")
        return ()
    scenarios = {scenario.id: scenario for scenario in loaded.scenarios}
    private = read_private_anchors(Path(os.path.expanduser(own)), scenarios, rubric) if own else ()  # noqa: PTH111
    return (*private, *loaded.anchors)
