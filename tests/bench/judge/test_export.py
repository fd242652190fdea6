"""An export is blind: nothing in the file leads back to model or prompt, or tells an anchor from a candidate."""

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.filling import filled
from tipbench.bench.bench import Bench
from tipbench.bench.judge.export import Exported, export_batch
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.sample import ANCHORS, REPEATS, BatchSize
from tipbench.bench.records import Batch
from tipbench.bench.suites.anchors import ENOUGH_ANCHORS
from tipbench.bench.suites.load import load_suite
from tipbench.bench.tracking.batches import applied_batch, batch_runs, read_batch
from tipbench.bench.tracking.interface import Experiment
from tipbench.bench.tracking.runs import stored_runs
from tipbench.core.errors import InvalidInput, NothingPending
from tipbench.core.paths import server_folder

SUITE = load_suite("tip")
RUBRIC = SUITE.rubric


def _export(work: Bench, experiment: Experiment, judge: str = "ana", seed: int = 0, **extent: int) -> Exported:
    now = (work.context.new_id, work.now_ms)
    chosen = BatchSize(**{"sample": 5, **extent})  # type: ignore[arg-type]  # none of them is a list of candidates
    return export_batch(work.store, experiment, RUBRIC, JudgeName(judge), seed, *now, chosen, SUITE.anchors)


def _batch(work: Bench, experiment: Experiment) -> Batch:
    return read_batch(work.store, batch_runs(work.store, experiment)[-1])


def _anchors(batch: Batch) -> set[str]:
    return {slot.of for slot in batch.slots if slot.kind == "anchor"}


def _runs(batch: Batch) -> set[str]:
    return {slot.run_id for slot in batch.slots if slot.run_id}


def _kinds(batch: Batch) -> Counter[str]:
    return Counter(slot.kind for slot in batch.slots)


def test_every_candidate_of_every_cell_is_in_the_batch_once(work: Bench, experiment: Experiment) -> None:
    exported = _export(work, experiment)
    batch = _batch(work, experiment)
    assert _kinds(batch) == {"candidate": 60, "anchor": ANCHORS, "repeat": REPEATS}
    assert exported.items == len(exported.file["items"]) == 60 + ANCHORS + REPEATS
    own = [(slot.run_id, slot.candidate) for slot in batch.slots if slot.kind == "candidate"]
    assert len(set(own)) == 60
    assert [slot.slot for slot in batch.slots] == [item["slot"] for item in exported.file["items"]]
    assert len({slot.slot for slot in batch.slots}) == exported.items


def test_nothing_in_the_file_tells_models_prompts_runs_or_anchors(
    work: Bench, collected: Callable[..., Experiment], tmp_path: Path
) -> None:
    script = tmp_path / "qwen2.5.yaml"
    tips = ["As Qwen2.5, made by Alibaba Cloud, I say: call Jule now.", "v3-few-shot says: rest.", "c", "d", "e"]
    script.write_text(json.dumps({"parameters": 10**9, "rules": [{"answer": json.dumps(tips)}]}))
    experiment = collected(models=f"scripted/{script},scripted/gemma3-1b")
    exported = _export(work, experiment)
    text = json.dumps({**exported.file, "rubric": None}, ensure_ascii=False).lower()
    for item in exported.file["items"]:
        assert list(item) == ["slot", "scenario", "candidate", "checked", "scores", "flags", "note"]
        assert set(item["scores"].values()) == {None}
    runs = stored_runs(work.store, experiment)
    batch = _batch(work, experiment)
    tells = {value for run in runs for value in (run.run_id, run.tags["tipbench.cell_key"], run.params["model"])}
    tells |= {"qwen", "alibaba", "gemma", "scripted", "v2-mentor", "v3-few-shot", "anchor", "repeat", batch.secret}
    tells |= {slot.of for slot in batch.slots if slot.kind == "anchor"}
    assert sorted(tell for tell in tells if tell.lower() in text) == []
    assert "as […], made by […] cloud, i say: call jule now." in text, "marked, not dropped"


def test_a_candidate_that_names_nobody_is_shown_as_it_is(work: Bench, experiment: Experiment) -> None:
    shown = {item["candidate"] for item in _export(work, experiment).file["items"]}
    assert not [text for text in shown if "[…]" in text]


def test_anchors_look_like_candidates(work: Bench, collected: Callable[..., Experiment]) -> None:
    experiment = collected(n_scenarios=3)
    file, batch = _export(work, experiment).file, _batch(work, experiment)
    kind = {slot.slot: slot.kind for slot in batch.slots}
    scenarios = {item["scenario"] for item in file["items"] if kind[item["slot"]] == "candidate"}
    assert len([item for item in file["items"] if kind[item["slot"]] == "anchor"]) == ANCHORS
    beside = [item["scenario"] in scenarios for item in file["items"] if kind[item["slot"]] == "anchor"]
    assert sum(beside) == 15, "all five of each of the batch's scenarios go before others"
    places = [number for number, item in enumerate(file["items"]) if kind[item["slot"]] == "anchor"]
    assert max(places) - min(places) > len(file["items"]) // 2, "spread over the file"


def test_repeats_are_texts_of_the_batch_in_slots_of_their_own(work: Bench, experiment: Experiment) -> None:
    file, batch = _export(work, experiment).file, _batch(work, experiment)
    items = {item["slot"]: item for item in file["items"]}
    for slot in batch.slots:
        if slot.kind == "repeat":
            first, second = items[slot.of], items[slot.slot]
            assert (first["scenario"], first["candidate"]) == (second["scenario"], second["candidate"])
            assert first["slot"] != second["slot"]


def test_the_order_can_not_be_computed_from_the_file_and_the_seed(work: Bench, experiment: Experiment) -> None:
    """With the secret, which only the manifest holds, the draw can be done again; without it, it can't."""
    file, batch = _export(work, experiment).file, _batch(work, experiment)
    runs = sorted((run.tags["tipbench.cell_key"], run.run_id) for run in stored_runs(work.store, experiment))
    candidates = [run_id for _ in range(5) for _, run_id in runs]

    def recovered(guess: str) -> int:
        """How many slots' runs somebody finds out who takes this for the draw's seed."""
        drawn = random.Random(guess)
        gold = list(SUITE.anchors)
        drawn.shuffle(gold)
        for _ in range(ANCHORS):
            drawn.choice(range(60))
        for _ in range(len(file["items"])):
            drawn.choices("23456789abcdefghjkmnpqrstuvwxyz", k=8)
        drawn.sample(range(60), REPEATS)
        order = list(range(len(file["items"])))
        drawn.shuffle(order)
        found = zip(order, batch.slots, strict=True)
        return sum(place < 60 and candidates[place] == slot.run_id for place, slot in found)

    assert recovered(f"0/{batch.secret}") == 60, "so it would go, with the secret"
    for guess in ("0", f"0/{file['batch']}", file["batch"], f"{file['batch']}/0"):
        assert recovered(guess) < 30
    assert batch.secret not in str(file)


def test_two_batches_have_no_slot_in_common_and_the_same_candidates(work: Bench, experiment: Experiment) -> None:
    batches = []
    for judge in ("ana", "ben"):
        _export(work, experiment, judge, sample=2)
        batches.append(_batch(work, experiment))
    first, second = ({slot.slot for slot in batch.slots} for batch in batches)
    assert not first & second
    own = [{(s.run_id, s.candidate) for s in batch.slots if s.kind == "candidate"} for batch in batches]
    assert own[0] == own[1], "so that judges can be compared"
    assert len(own[0]) == 24


def test_the_default_is_one_candidate_of_each_cell(work: Bench, collected: Callable[..., Experiment]) -> None:
    experiment = collected(models="scripted/a,scripted/b,scripted/c,scripted/d", n_scenarios=0)
    now = (work.context.new_id, work.now_ms)
    exported = export_batch(work.store, experiment, RUBRIC, JudgeName("ana"), 0, *now, BatchSize(), SUITE.anchors)
    assert (exported.sample, exported.candidates, exported.left_out) == (1, 96, 96 * 4)


def test_a_limit_takes_one_of_each_cell_before_a_second_of_any(work: Bench, experiment: Experiment) -> None:
    _export(work, experiment, sample=2, limit=7)
    by_cell = Counter(slot.run_id for slot in _batch(work, experiment).slots if slot.kind == "candidate")
    assert sorted(by_cell.values()) == [1] * 7
    _export(work, experiment, "ben", sample=2, limit=15)
    by_cell = Counter(slot.run_id for slot in _batch(work, experiment).slots if slot.kind == "candidate")
    assert sorted(by_cell.values()) == [1] * 9 + [2] * 3


def test_a_second_candidate_of_each_cell_is_asked_for_once_all_have_one(work: Bench, experiment: Experiment) -> None:
    """Its score is averaged with the first one's; nothing is judged twice."""
    with Bench("x", context=work.context) as bench:
        first = bench.new_batch(JudgeName("ana"))
        bench.apply(filled(first.file))
        seen = {(slot.run_id, slot.candidate) for slot in _batch(work, experiment).slots if slot.run_id}
        with pytest.raises(NothingPending, match="--sample 2 takes one more candidate of each cell"):
            bench.new_batch(JudgeName("ana"))
        second = bench.new_batch(JudgeName("ana"), BatchSize(sample=2))
        assert second.candidates == 12
        new = {(slot.run_id, slot.candidate) for slot in _batch(work, experiment).slots if slot.run_id}
        assert not new & seen
        bench.apply(filled(second.file))
        with pytest.raises(NothingPending, match="--sample 3 takes one more"):
            bench.new_batch(JudgeName("ana"), BatchSize(sample=2))
        (cell,) = [one for one in bench.snapshot().cells if one.run_id == min(run_id for run_id, _ in seen)]
        given = {
            (verdict.slot.run_id, verdict.slot.candidate): verdict.composite
            for run in batch_runs(work.store, experiment)
            for verdict in (applied_batch(work.store, run) or pytest.fail("not applied")).verdicts
            if verdict.slot.kind == "candidate" and verdict.slot.run_id == cell.run_id
        }
        assert len(given) == 2
        assert cell.metrics["composite"] == pytest.approx(sum(given.values()) / 2)


def test_the_first_20_items_have_12_anchors_and_the_next_3_others(work: Bench, experiment: Experiment) -> None:
    first = _export(work, experiment, sample=1, items=20)
    seen = _batch(work, experiment)
    assert _kinds(seen) == {"candidate": 6, "anchor": ENOUGH_ANCHORS, "repeat": 2}
    assert len({slot.run_id for slot in seen.slots if slot.run_id}) == 6
    with Bench("x", context=work.context) as bench:
        applied = bench.apply(filled(first.file))
        assert (applied.counted, applied.drift.assessable) == (True, True)
        _export(work, experiment, items=20)
        second = _batch(work, experiment)
        assert _kinds(second) == {"candidate": 16, "anchor": 3, "repeat": 1}
        assert not _anchors(seen) & _anchors(second), "none that the judge has seen"
        _export(work, experiment, "ben", sample=1, items=20)
        third = _batch(work, experiment)
        assert _kinds(third)["anchor"] == ENOUGH_ANCHORS, "another judge is new"
        assert not _runs(third) & _runs(seen), "what waits for any judge goes first"


def test_few_pending_texts_make_a_smaller_first_batch(work: Bench, experiment: Experiment) -> None:
    exported = _export(work, experiment, sample=1, limit=3, items=20)
    assert (exported.candidates, exported.anchors, exported.repeats) == (3, 6, 1)


def test_what_is_in_a_file_is_left_out_of_the_next_until_nothing_else_waits(
    work: Bench, experiment: Experiment
) -> None:
    def export(name: str) -> tuple[Exported, set[str]]:
        with Bench("x", context=work.context) as bench:
            exported = bench.export(work.context.settings.home / name, "ana", BatchSize(1, items=20))
        return exported, _runs(_batch(work, experiment))

    work.context.settings.home.mkdir(exist_ok=True)
    (first, one), (second, two), (third, three) = export("1.json"), export("2.json"), export("3.json")
    assert first.notes == ()
    assert not one & two
    assert len(second.notes) == 1
    assert re.fullmatch(
        r"An earlier file for judge 'ana' is still open: 20 items, exported on 1970-01-01 00:\d\d UTC. "
        "Its texts are not in the new batch.",
        second.notes[0],
    )
    assert three <= one | two
    assert len(third.notes) == 2
    assert third.notes[0].endswith("because nothing else waits: apply only one of them.")
    job = server_folder(work.context.settings.home) / "jobs" / "1"
    job.mkdir(parents=True)
    of_a_job = export(str(job / "judge.json"))[0]
    assert len(of_a_job.notes) == len(export("4.json")[0].notes) == 3, "what a job writes is nobody's open file"


def test_private_anchors_go_first(work: Bench, experiment: Experiment) -> None:
    own = tuple(replace(anchor, id=f"own-{anchor.id}", private=True) for anchor in SUITE.anchors[-4:])
    now = (work.context.new_id, work.now_ms)
    export_batch(
        *(work.store, experiment, RUBRIC, JudgeName("ana"), 0, *now), BatchSize(5), (*SUITE.anchors[:30], *own)
    )
    used = {slot.of for slot in _batch(work, experiment).slots if slot.kind == "anchor"}
    assert {anchor.id for anchor in own} <= used


def test_nothing_to_judge_is_said(work: Bench, collected: Callable[..., Experiment], tmp_path: Any) -> None:
    script = tmp_path / "mute.yaml"
    script.write_text('parameters: 1000000\nrules: [{answer: "no list in here"}]')
    experiment = collected(models=f"scripted/{script}")
    with pytest.raises(InvalidInput, match="nothing in experiment 'x' waits for judge 'ana'"):
        _export(work, experiment)
