"""A judge's batch as a run and back, and the single scores that are kept with it."""

import json
from dataclasses import replace
from itertools import permutations

import pytest

from tests.bench.tracking.store_contract import a_draft
from tipbench.bench.records import Batch, Slot, Verdict
from tipbench.bench.tracking.batches import (
    BatchSummary,
    accept_drift,
    applied_batch,
    applied_batches,
    batch_runs,
    deciding_batch,
    find_batch,
    latest_rubric_digest,
    read_batch,
    summaries,
    write_batch,
    write_verdicts,
)
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.store import RunStore
from tipbench.bench.tracking.texts import as_tags, note_key
from tipbench.core.errors import InvalidInput, StoredDataDamaged

SLOTS = tuple(
    Slot(f"s{n:02}", f"run-{n % 3}", n, f"digest-{n}", "of-scenario", {"format_ok": n % 2 == 0}) for n in range(40)
)
BATCH = Batch("b-1", "person:anna", False, 7, "rubric-digest", 5_000, "secret", SLOTS)
VERDICTS = [
    Verdict(SLOTS[3], {"relevance": 4, "tone": 5}, {"overlong": True}, ("overlong",), 11.5, 'Wörds "\x00\ud800 =1+1'),
    Verdict(SLOTS[0], {"relevance": 1, "tone": 2}, {"overlong": False}, (), 3.0, ""),
]


def test_a_batch_comes_back(store: RunStore, experiment: Experiment) -> None:
    write_batch(store, experiment, BATCH, "tip-v1", "# Rubric")
    run = find_batch(store, experiment, "b-1")
    assert read_batch(store, run) == BATCH
    assert store.text(run, "rubric.md") == "# Rubric"
    assert run.tags["tipbench.rubric"] == "tip-v1"
    assert run.metrics == {"batch/slots": 40}
    assert applied_batch(store, run) is None


def test_a_summary_tells_what_a_comparison_needs(store: RunStore, experiment: Experiment) -> None:
    write_batch(store, experiment, BATCH, "tip-v1", "# Rubric")
    write_batch(store, experiment, replace(BATCH, id="b-2"), "tip-v1", "# Rubric")
    assert summaries(store, batch_runs(store, experiment)) == ()
    drift = {"criteria": {"tone": {"kappa": {"value": 0.25}}, "relevance": {"kappa": {"value": None}}}}
    run = find_batch(store, experiment, "b-1")
    write_verdicts(store, run, VERDICTS, drift, "it drifted", "", 9_000)
    told = {"tone": 0.25, "relevance": None}
    expected = BatchSummary(run.run_id, "b-1", "person:anna", "rubric-digest", 9_000, False, told)
    assert summaries(store, batch_runs(store, experiment)) == (expected,)
    [applied] = applied_batches(store, batch_runs(store, experiment), "rubric-digest")
    accept_drift(store, applied, "anna: all the same")
    assert summaries(store, batch_runs(store, experiment)) == (replace(expected, counted=True),)


def test_a_batch_that_was_applied_before_kappas_were_tagged(store: RunStore, experiment: Experiment) -> None:
    write_batch(store, experiment, BATCH, "tip-v1", "# Rubric")
    drift = {"criteria": {"tone": {"kappa": {"value": 0.25}}}}
    write_verdicts(store, find_batch(store, experiment, "b-1"), VERDICTS, drift, "", "", 9_000)
    run = find_batch(store, experiment, "b-1")
    old = run._replace(tags={key: value for key, value in run.tags.items() if key != "tipbench.kappas"})
    assert summaries(store, [old]) == summaries(store, [run])
    for damage in ({"tipbench.kappas": "[]"}, {"tipbench.kappas": "{"}, {"tipbench.applied_ms": "late"}):
        with pytest.raises(StoredDataDamaged, match=run.run_id):
            summaries(store, [run._replace(tags={**run.tags, **damage})])


def test_the_newest_batch_that_counts_decides_by_which_rubric(store: RunStore, experiment: Experiment) -> None:
    for number, (at_ms, quarantine) in enumerate([(3, ""), (5, "it drifted"), (4, ""), (4, "")]):
        batch = replace(BATCH, id=f"b-{number}", rubric_digest=f"rubric-{number}")
        write_batch(store, experiment, batch, "tip-v1", "# Rubric")
        write_verdicts(store, find_batch(store, experiment, batch.id), [], {}, quarantine, "", at_ms)
    runs = batch_runs(store, experiment)
    for some in permutations(runs):
        decides = deciding_batch(some)
        assert decides is not None
        assert decides.tags["tipbench.batch"] == "b-3"  # of two at the same moment always the same
        assert latest_rubric_digest(some) == "rubric-3"
    drifted = [run for run in runs if run.tags["tipbench.batch"] == "b-1"]
    assert (deciding_batch(drifted), latest_rubric_digest(drifted)) == (drifted[0], None)
    assert deciding_batch([]) is None


def test_the_manifest_alone_tells_which_slot_is_which_run(store: RunStore, experiment: Experiment) -> None:
    write_batch(store, experiment, BATCH, "tip-v1", "# Rubric")
    run = find_batch(store, experiment, "b-1")
    assert not [key for key, value in {**run.tags, **run.params}.items() if "run-1" in value or "digest-3" in value]


def test_scores_come_back_and_count(store: RunStore, experiment: Experiment) -> None:
    write_batch(store, experiment, BATCH, "tip-v1", "# Rubric")
    write_verdicts(store, find_batch(store, experiment, "b-1"), VERDICTS, {"anchors": 3}, "", "", 9_000)
    [found] = applied_batches(store, batch_runs(store, experiment), "rubric-digest")
    assert (found.batch, found.applied_ms, found.drift) == (BATCH, 9_000, {"anchors": 3})
    assert list(found.verdicts) == VERDICTS
    assert found.counted
    assert applied_batches(store, batch_runs(store, experiment), "another rubric") == []


def test_scores_in_quarantine_count_once_somebody_accepts_them(store: RunStore, experiment: Experiment) -> None:
    write_batch(store, experiment, BATCH, "tip-v1", "# Rubric")
    write_verdicts(store, find_batch(store, experiment, "b-1"), VERDICTS, {}, "tone: too high", "", 9_000)
    [found] = applied_batches(store, batch_runs(store, experiment), "rubric-digest")
    assert not found.counted
    accept_drift(store, found, "ana: the rubric was unclear")
    [found] = applied_batches(store, batch_runs(store, experiment), "rubric-digest")
    assert (found.counted, found.quarantine, found.accepted) == (True, "tone: too high", "ana: the rubric was unclear")


def test_scores_that_were_replaced_stay(store: RunStore, experiment: Experiment) -> None:
    write_batch(store, experiment, BATCH, "tip-v1", "# Rubric")
    for verdicts, at_ms in ((VERDICTS, 9_000), (VERDICTS[:1], 9_001)):
        write_verdicts(store, find_batch(store, experiment, "b-1"), verdicts, {}, "", "", at_ms)
    [found] = applied_batches(store, batch_runs(store, experiment), "rubric-digest")
    assert list(found.verdicts) == VERDICTS[:1]
    kept = [key.removeprefix("tipbench.text:") for key in found.run.tags if key.startswith("tipbench.text:scores-")]
    history = sorted(json.loads(store.text(found.run, name) or "")["applied_ms"] for name in kept)
    assert history == [9_000, 9_001]


def test_batches_are_told_apart_from_each_other_and_from_cells(store: RunStore, experiment: Experiment) -> None:
    store.write_run(experiment, a_draft(tags={"tipbench.kind": "cell"}))
    for number in (2, 1):
        batch = replace(BATCH, id=f"b-{number}", provisional=number == 2, created_ms=number)
        write_batch(store, experiment, batch, "tip-v1", "# Rubric")
    assert [read_batch(store, run).id for run in batch_runs(store, experiment)] == ["b-1", "b-2"]
    assert read_batch(store, find_batch(store, experiment, "b-2")).provisional


def test_no_such_batch(store: RunStore, experiment: Experiment) -> None:
    with pytest.raises(InvalidInput, match="'tip-bench-test' has no batch 'b-9'") as caught:
        find_batch(store, experiment, "b-9")
    assert store.address in str(caught.value)


@pytest.mark.parametrize("manifest", ["", "{", "[]", "{}", '{"slots": [{}]}', '{"slots": 3}', "null"])
def test_a_damaged_manifest(store: RunStore, experiment: Experiment, manifest: str) -> None:
    write_batch(store, experiment, BATCH, "tip-v1", "# Rubric")
    run = find_batch(store, experiment, "b-1")
    with pytest.raises(StoredDataDamaged, match=run.run_id):
        read_batch(store, run._replace(tags={**run.tags, **as_tags("manifest.json", manifest)}))


@pytest.mark.parametrize(
    "tag", ["tipbench.judge", "tipbench.seed", "tipbench.rubric_digest", note_key("manifest.json")]
)
def test_a_lost_tag(store: RunStore, experiment: Experiment, tag: str) -> None:
    write_batch(store, experiment, BATCH, "tip-v1", "# Rubric")
    run = find_batch(store, experiment, "b-1")
    with pytest.raises(StoredDataDamaged, match=run.run_id):
        read_batch(store, run._replace(tags={key: value for key, value in run.tags.items() if key != tag}))


@pytest.mark.parametrize("scores", ["{", "{}", '{"scores": [{"slot": "s99"}]}', '{"scores": [1]}'])
def test_damaged_scores(store: RunStore, experiment: Experiment, scores: str) -> None:
    write_batch(store, experiment, BATCH, "tip-v1", "# Rubric")
    write_verdicts(store, find_batch(store, experiment, "b-1"), VERDICTS, {}, "", "", 9_000)
    run = find_batch(store, experiment, "b-1")
    damaged = {**run.tags, **as_tags("scores-x.json", scores), "tipbench.scores": "scores-x.json"}
    with pytest.raises(StoredDataDamaged, match=r"scores-x\.json"):
        applied_batch(store, run._replace(tags=damaged))
