"""Scores are written all or nothing, once, and never over somebody else's."""

from pathlib import Path
from typing import Any

import pytest

from tests.integration.filling import filled
from tipbench.errors import InvalidInput, StoredDataDamaged, TrackingError
from tipbench.judge.apply import apply_file
from tipbench.judge.export import export_batch
from tipbench.judge.judges.interface import JudgeName
from tipbench.judge.pending import pending_runs
from tipbench.pipeline import Workplace, compare, current_rubric, run_judge
from tipbench.suites.load import load_suite, parse_rubric
from tipbench.suites.rubric import Rubric
from tipbench.tracking.batches import find_batch, read_verdicts
from tipbench.tracking.interface import Experiment
from tipbench.tracking.runs import stored_cell, stored_runs
from tipbench.tracking.store import RunStore

RUBRIC = load_suite("tip").rubric
STRICTER = parse_rubric(RUBRIC.text.replace("# Rubric tip-v1", "# Rubric tip-v1, read more strictly"))


def _export(work: Workplace, experiment: Experiment, judge: str = "ana", rubric: Rubric = RUBRIC) -> dict[str, Any]:
    return export_batch(work.store, experiment, rubric, JudgeName(judge), 0, work.new_id, work.now_ms)


def _judged(store: RunStore, experiment: Experiment) -> int:
    return sum(stored_cell(run).is_counted(RUBRIC.digest) for run in stored_runs(store, experiment))


def test_a_changed_rubric_means_judging_again(work: Workplace, experiment: Experiment) -> None:
    apply_file(work.store, experiment, filled(_export(work, experiment)), work.now_ms)
    assert pending_runs(work.store, experiment, "ana", RUBRIC) == []
    assert len(pending_runs(work.store, experiment, "ana", STRICTER)) == 12
    apply_file(work.store, experiment, filled(_export(work, experiment, rubric=STRICTER)), work.now_ms)
    assert current_rubric(work.store, experiment).digest == STRICTER.digest
    assert compare(work.store, experiment, STRICTER).judged == 12


def test_a_second_judges_batch_does_not_replace_the_first_ones_scores(work: Workplace, experiment: Experiment) -> None:
    ana, ben = (filled(_export(work, experiment, judge)) for judge in ("ana", "ben"))
    apply_file(work.store, experiment, ana, work.now_ms)
    before = [run.metrics for run in stored_runs(work.store, experiment)]
    with pytest.raises(InvalidInput, match=r"scored by 'ana' .* nothing was written"):
        apply_file(work.store, experiment, ben, work.now_ms)
    assert [run.metrics for run in stored_runs(work.store, experiment)] == before
    assert compare(work.store, experiment, RUBRIC).judges == ("ana",)


def test_other_scores_for_a_batch_that_has_some_are_refused(work: Workplace, experiment: Experiment) -> None:
    file = filled(_export(work, experiment))
    apply_file(work.store, experiment, file, work.now_ms)
    assert apply_file(work.store, experiment, file, work.now_ms).changed is False
    score = file["items"][0]["scores"]
    score["tone"] = 1 if score["tone"] > 1 else 2
    with pytest.raises(InvalidInput, match="holds other scores"):
        apply_file(work.store, experiment, file, work.now_ms)


@pytest.mark.parametrize("writes", range(0, 14, 3))
def test_an_apply_that_breaks_off_is_finished_by_the_same_file(
    work: Workplace, experiment: Experiment, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    file = filled(_export(work, experiment))
    extend, left = RunStore.extend_run, iter(range(writes))

    def breaks_off(*given: Any, **named: Any) -> None:
        if next(left, None) is None:
            raise TrackingError("the plug was pulled")
        extend(*given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "extend_run", breaks_off)
        with pytest.raises(TrackingError):
            apply_file(work.store, experiment, file, work.now_ms)
    assert apply_file(work.store, experiment, file, work.now_ms).changed is True
    assert _judged(work.store, experiment) == 12
    assert compare(work.store, experiment, RUBRIC).pending == 0
    kept = read_verdicts(work.store, find_batch(work.store, experiment, file["batch"]))
    assert {verdict.slot.slot: verdict.scores for verdict in kept} == {i["slot"]: i["scores"] for i in file["items"]}


def test_a_run_that_is_gone_is_found_before_anything_is_written(
    work: Workplace, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = filled(_export(work, experiment))
    runs = RunStore.runs
    with monkeypatch.context() as patched:
        patched.setattr(RunStore, "runs", lambda *given: runs(*given)[:5])
        with pytest.raises(StoredDataDamaged, match="gone from MLflow"):
            apply_file(work.store, experiment, file, work.now_ms)
    file["items"][0]["scores"]["tone"] = 3  # still free to change: nothing was kept
    assert apply_file(work.store, experiment, file, work.now_ms).changed is True


def test_provisional_scores_leave_a_cell_pending_and_its_metrics_alone(work: Workplace, experiment: Experiment) -> None:
    run_judge(work, experiment, RUBRIC, "lexical", 0)
    for run in stored_runs(work.store, experiment):
        assert run.tags["judge_pending"] == "true"
        assert "composite" not in run.metrics
        assert 2 <= run.metrics["judge/lexical/composite"] <= 17
    assert compare(work.store, experiment, RUBRIC).provisional is True


def test_a_provisional_judge_with_another_rubric_does_not_hide_counted_scores(
    work: Workplace, experiment: Experiment
) -> None:
    apply_file(work.store, experiment, filled(_export(work, experiment)), work.now_ms)
    run_judge(work, experiment, STRICTER, "lexical", 0)
    assert current_rubric(work.store, experiment).digest == RUBRIC.digest
    assert compare(work.store, experiment, RUBRIC).provisional is False


def test_an_overruled_flag_counts_and_is_remembered(work: Workplace, experiment: Experiment) -> None:
    file = filled(_export(work, experiment))
    for item in file["items"]:
        item["flags"]["overlong"] = True
    assert apply_file(work.store, experiment, file, work.now_ms).overruled == 60
    assert all(run.metrics["overlong"] == 1 for run in stored_runs(work.store, experiment))


def test_texts_scales_and_what_code_checked_are_held_against_the_batch(
    work: Workplace, experiment: Experiment, tmp_path: Path
) -> None:
    good = filled(_export(work, experiment))
    first = good["items"][0]
    for spoiled, word in (
        ({**good, "rubric": {**good["rubric"], "text": "Give everything a 5."}}, "rubric.text"),
        ({**good, "scales": {}}, "scales"),
        ({**good, "items": [{**first, "scenario": "Another."}, *good["items"][1:]]}, "scenario"),
        ({**good, "items": [{**first, "checked": {}}, *good["items"][1:]]}, "checked"),
        ({**good, "items": [{**first, "flag": {"overlong": True}}, *good["items"][1:]]}, "'flag'"),
    ):
        with pytest.raises(InvalidInput, match=word):
            apply_file(work.store, experiment, spoiled, work.now_ms)
    assert _judged(work.store, experiment) == 0
