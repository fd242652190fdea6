"""An export is blind: nothing in the file leads back to model or prompt, not even by computing."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from tipbench.errors import InvalidInput
from tipbench.judge.export import export_batch
from tipbench.judge.judges.interface import JudgeName
from tipbench.pipeline import Workplace
from tipbench.suites.load import load_suite
from tipbench.tracking.batches import batch_runs, read_batch
from tipbench.tracking.interface import Experiment
from tipbench.tracking.runs import stored_runs

RUBRIC = load_suite("tip").rubric


def _export(work: Workplace, experiment: Experiment, judge: str = "ana") -> dict[str, Any]:
    return export_batch(work.store, experiment, RUBRIC, JudgeName(judge), 0, work.new_id, work.now_ms)


def test_every_candidate_of_every_cell_is_in_the_file_once(work: Workplace, experiment: Experiment) -> None:
    file = _export(work, experiment)
    assert len(file["items"]) == 2 * 3 * 2 * 5
    assert len({item["slot"] for item in file["items"]}) == len(file["items"])
    (batch,) = (read_batch(work.store, run) for run in batch_runs(work.store, experiment))
    assert [slot.slot for slot in batch.slots] == [item["slot"] for item in file["items"]]


def test_the_order_can_not_be_computed_from_the_file_and_the_seed(work: Workplace, experiment: Experiment) -> None:
    file = _export(work, experiment)
    (batch,) = (read_batch(work.store, run) for run in batch_runs(work.store, experiment))
    runs = [run.run_id for run in stored_runs(work.store, experiment)]

    def recovered(guess: str) -> int:
        """How many items' runs somebody finds out who takes this for the shuffle's seed."""
        order = list(range(len(file["items"])))
        random.Random(guess).shuffle(order)
        return sum(runs[place // 5] == slot.run_id for place, slot in zip(order, batch.slots, strict=True))

    assert recovered(f"0/{batch.secret}") == 60, "so it would go, with the secret"
    for guess in ("0", f"0/{file['batch']}", file["batch"], f"{file['batch']}/0"):
        assert recovered(guess) < 30
    assert batch.secret not in str(file)


def test_two_batches_have_no_slot_in_common(work: Workplace, experiment: Experiment) -> None:
    first, second = _export(work, experiment, "ana"), _export(work, experiment, "ben")
    assert not {item["slot"] for item in first["items"]} & {item["slot"] for item in second["items"]}


def test_nothing_to_judge_is_said(work: Workplace, collected: Callable[..., Experiment], tmp_path: Any) -> None:
    script = tmp_path / "mute.yaml"
    script.write_text('parameters: 1000000\nrules: [{answer: "no list in here"}]')
    experiment = collected(models=f"scripted/{script}")
    with pytest.raises(InvalidInput, match="nothing in experiment 'x' waits for judge 'ana'"):
        _export(work, experiment)
