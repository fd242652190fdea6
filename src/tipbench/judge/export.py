"""Export: the pending candidates become a batch, shuffled and without any hint at where they came from."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tipbench.errors import InvalidInput
from tipbench.identity import text_digest
from tipbench.judge.file import BatchItem, judge_file
from tipbench.judge.judges.interface import JudgeName
from tipbench.judge.pending import pending_runs
from tipbench.records import Batch, Slot
from tipbench.suites.rubric import Rubric
from tipbench.tracking.batches import write_batch
from tipbench.tracking.interface import Experiment
from tipbench.tracking.runs import stored_candidates
from tipbench.tracking.store import RunStore

_SLOT_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"
_SLOT_LENGTH = 8


def export_batch(
    store: RunStore,
    experiment: Experiment,
    rubric: Rubric,
    judge: JudgeName,
    seed: int,
    new_id: Callable[[], str],
    now_ms: int,
) -> dict[str, Any]:
    """Records a batch in MLflow and returns the judge file for it."""
    batch_id, secret = new_id(), new_id()
    drawn = random.Random(f"{seed}/{secret}")
    items = _pending_items(store, experiment, rubric, judge.name)
    if not items:
        raise InvalidInput(
            f"nothing in experiment '{experiment.name}' waits for judge '{judge.name}'; "
            f"'tipbench compare --experiment {experiment.name}' shows where it stands"
        )
    drawn.shuffle(items)
    names = _slot_names(drawn, len(items))
    items = [item._replace(slot=replace(item.slot, slot=name)) for item, name in zip(items, names, strict=True)]
    batch = Batch(
        id=batch_id,
        judge=judge.name,
        provisional=judge.provisional,
        seed=seed,
        rubric_digest=rubric.digest,
        created_ms=now_ms,
        secret=secret,
        slots=tuple(item.slot for item in items),
        applied=False,
    )
    write_batch(store, experiment, batch, rubric.name, rubric.text)
    return judge_file(batch, rubric, items)


def _pending_items(store: RunStore, experiment: Experiment, rubric: Rubric, judge: str) -> list[BatchItem]:
    items = []
    for run in pending_runs(store, experiment, judge, rubric):
        stored = stored_candidates(store, run)
        for number, text in enumerate(stored.texts):
            flags = rubric.checked_flags(text, stored.format_ok)
            slot = Slot("", run.run_id, number, text_digest(text), text_digest(stored.scenario), flags)
            items.append(BatchItem(slot, stored.scenario, text))
    return items


def _slot_names(drawn: random.Random, count: int) -> list[str]:
    names: dict[str, None] = {}
    while len(names) < count:
        names["".join(drawn.choices(_SLOT_LETTERS, k=_SLOT_LENGTH))] = None
    return list(names)
