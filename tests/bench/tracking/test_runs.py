"""A cell as a run and back: nothing a judge or a leaderboard needs is lost."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.bench.tracking.records_made import MODEL, RUBRIC, SCENARIO, a_failure, an_answer
from tipbench.bench.records import BY_RULE, Generation, JudgeNote, Outcome, StoredCell
from tipbench.bench.tracking.interface import Experiment, StoredRun
from tipbench.bench.tracking.runs import (
    SUPERSEDED,
    CellCounts,
    cell_draft,
    count_cells,
    judge_tag,
    newest_cell,
    stored_candidates,
    stored_cell,
    stored_cells,
    stored_rubric,
    stored_runs,
)
from tipbench.bench.tracking.store import RunStore
from tipbench.core.errors import StoredDataDamaged

Changes = Mapping[str, str | None]


def write(store: RunStore, experiment: Experiment, outcome: Outcome, started_ms: int = 5_000) -> str:
    draft = cell_draft(outcome, RUBRIC, "tip", "0.1.0", (started_ms, started_ms + 900))
    return store.write_run(experiment, draft)


def read_back(store: RunStore, experiment: Experiment, outcome: Outcome) -> tuple[StoredRun, StoredCell]:
    write(store, experiment, outcome)
    [run] = stored_runs(store, experiment)
    return run, stored_cell(run)


def test_an_answer_comes_back(store: RunStore, experiment: Experiment) -> None:
    answer = an_answer()
    run, cell = read_back(store, experiment, answer)
    assert (cell.key, cell.model, cell.prompt, cell.prompt_digest) == (
        *("key-1", MODEL.name, "v3-few-shot", "prompt-digest"),
    )
    assert (cell.scenario, cell.factors, cell.repeat) == (SCENARIO.id, SCENARIO.factors, 1)
    assert (cell.started_ms, cell.failure, cell.candidates, cell.pending) == (5_000, None, 2, True)
    assert (cell.judged_rubric, cell.judged_by, cell.judges) == (None, None, ())
    assert cell.metrics == {
        "answer/candidates": 2,
        "answer/found": 5,
        "answer/format_ok": 1,
        "answer/diversity": 0.75,
        "gen/prompt_tokens": 80,
        "gen/output_tokens": 40,
        "gen/load_s": 0.5,
        "gen/generate_s": 1.25,
        "gen/wall_s": 0.9,
    }
    kept = stored_candidates(store, run)
    assert (kept.scenario, kept.format_ok, kept.texts) == (SCENARIO.text, True, answer.candidates)
    assert store.text(run, "raw.txt") == answer.generation.text
    assert store.text(run, "prompt.txt") == "[system]\nYou are brief.\n\n[user]\nFor Maya."
    assert stored_rubric(store, run) == RUBRIC.text


def test_what_shapes_an_answer_can_be_seen_on_its_run(store: RunStore, experiment: Experiment) -> None:
    run, _ = read_back(store, experiment, an_answer())
    assert run.params == {
        "model": MODEL.name,
        "prompt": "v3-few-shot",
        "scenario": "maya-morning",
        "factor.persona": "maya",
        "factor.slot": "morning",
        "suite": "tip",
        "n_tips": "2",
        "temperature": "0.7",
        "max_tokens": "24",
        "diversity": "true",
        "seed": "11",
        "base_seed": "7",
        "repeat": "1",
    }
    wanted = {
        "judge_pending": "true",
        "tipbench.model_digest": "model-digest",
        "tipbench.parameters": "494032768",
        "tipbench.parameters_from": "metadata",
        "tipbench.rubric_digest": RUBRIC.digest,
        "tipbench.schema": "1",
        "tipbench.version": "0.1.0",
        "mlflow.runName": "maya-morning #2 · qwen2.5:0.5b × v3-few-shot",
    }
    assert wanted.items() <= run.tags.items()


def test_a_failure_is_a_stored_result(store: RunStore, experiment: Experiment) -> None:
    run, cell = read_back(store, experiment, a_failure("died\n\x1b[31m" + "x" * 9_000))
    assert run.status == "FAILED"
    assert cell.failure is not None
    assert cell.failure.startswith("died")
    assert cell.failure.isprintable()
    assert len(cell.failure) < 2_100
    assert (cell.pending, cell.candidates, cell.metrics, cell.judged_by) == (False, 0, {}, None)
    assert store.text(run, "prompt.txt")
    assert store.text(run, "raw.txt") is None


def test_an_answer_without_a_candidate_scores_the_rubrics_minimum_by_rule(
    store: RunStore, experiment: Experiment
) -> None:
    run, cell = read_back(store, experiment, an_answer(candidates=()))
    assert (cell.pending, cell.failure, cell.candidates) == (False, None, 0)
    assert (cell.judged_by, cell.judged_rubric) == (BY_RULE, RUBRIC.digest)
    assert RUBRIC.lowest.items() <= cell.metrics.items()
    assert (run.status, stored_candidates(store, run).texts) == ("FINISHED", ())


def test_what_an_engine_did_not_say_is_unknown_and_no_metric(store: RunStore, experiment: Experiment) -> None:
    bare = replace(MODEL, parameters=None, parameters_from="unknown", digest=None, size_bytes=None, quantization=None)
    answer = replace(an_answer(model=bare), generation=Generation("x", "\x1b[31mstop"), diversity=None)
    run, cell = read_back(store, experiment, answer)
    assert set(cell.metrics) == {"answer/candidates", "answer/found", "answer/format_ok", "gen/wall_s"}
    assert run.tags["tipbench.model_digest"] == "unknown: the name stands for it"
    assert {run.tags[f"tipbench.{name}"] for name in ("parameters", "model_bytes", "quantization")} == {"unknown"}
    assert run.tags["tipbench.finish_reason"].isprintable()


def test_of_two_runs_of_a_cell_the_oldest_counts(store: RunStore, experiment: Experiment) -> None:
    write(store, experiment, an_answer(("late",)), started_ms=9_000)
    oldest = write(store, experiment, an_answer(("early",)), started_ms=3_000)
    other = write(store, experiment, an_answer(key="key-2"), started_ms=4_000)
    assert [run.run_id for run in stored_runs(store, experiment)] == [oldest, other]


def test_counting_cells_counts_what_reading_them_finds(store: RunStore, experiment: Experiment) -> None:
    assert count_cells(store, experiment) == (0, 0, 0)
    assert newest_cell(store, experiment) is None
    twice = an_answer(key="a")
    for outcome in (twice, twice, a_failure(key="b"), an_answer((), key="c"), an_answer(key="d")):
        write(store, experiment, outcome)
    gone, *_ = [run for run in stored_runs(store, experiment) if run.tags["tipbench.cell_key"] == "d"]
    store.tag_run(experiment, gone.run_id, {SUPERSEDED: "true"})
    found = count_cells(store, experiment)
    assert found == CellCounts.of(stored_cells(store, experiment)) == (3, 1, 1)
    assert found.judged == 1
    assert newest_cell(store, experiment) == stored_runs(store, experiment)[-1]


def test_a_cell_of_another_schema_is_not_counted_silently(store: RunStore, experiment: Experiment) -> None:
    run_id = write(store, experiment, an_answer())
    store.tag_run(experiment, run_id, {"tipbench.schema": "99"})
    with pytest.raises(StoredDataDamaged, match="schema '99'"):
        count_cells(store, experiment)


def test_judges_are_remembered_each_by_name(store: RunStore, experiment: Experiment) -> None:
    write(store, experiment, an_answer())
    notes = (JudgeNote("lexical", "d1", "b1", True), JudgeNote("person:anna", "d2", "b2", False))
    for note in reversed(notes):
        [run] = stored_runs(store, experiment)
        store.extend_run(run, dict([judge_tag(note)]))
    [run] = stored_runs(store, experiment)
    assert stored_cell(run).judges == notes


@pytest.mark.parametrize(
    "damage",
    [
        {"tipbench.schema": "2"},
        {"tipbench.schema": None},
        {"tipbench.cell_key": None},
        {"tipbench.judge:a": "{"},
        {"tipbench.judge:a": "[]"},
        {"tipbench.judge:a": "{}"},
    ],
)
def test_damaged_tags_are_found_out(damage: Changes) -> None:
    with pytest.raises(StoredDataDamaged, match="run-1"):
        stored_cell(a_run(tags=damage))


@pytest.mark.parametrize("damage", [{"model": None}, {"repeat": "twice"}])
def test_damaged_params_are_found_out(damage: Changes) -> None:
    with pytest.raises(StoredDataDamaged, match="not a complete cell"):
        stored_cell(a_run(params=damage))


def test_the_same_run_without_damage_is_whole() -> None:
    assert stored_cell(a_run()).key == "key-1"


def a_run(tags: Changes | None = None, params: Changes | None = None) -> StoredRun:
    """A cell's run with some tags or params changed, or with None taken away."""
    draft = cell_draft(an_answer(), RUBRIC, "tip", "0.1.0", (0, 1))
    return StoredRun(
        "run-1", "FINISHED", 0, "", _changed(draft.tags, tags), _changed(draft.params, params), {}, {}, "1"
    )


def _changed(values: Mapping[str, str], changes: Changes | None) -> dict[str, str]:
    merged: dict[str, str | None] = {**values, **(changes or {})}
    return {key: value for key, value in merged.items() if value is not None}


def test_damaged_texts_are_found_out(store: RunStore, experiment: Experiment) -> None:
    run, _ = read_back(store, experiment, a_failure())
    with pytest.raises(StoredDataDamaged, match=r"candidates\.json"):
        stored_candidates(store, run)
    without = run._replace(tags={})
    with pytest.raises(StoredDataDamaged, match=r"no rubric\.md"):
        stored_rubric(store, without)


def test_figures_that_are_no_numbers_are_left_out(store: RunStore, experiment: Experiment) -> None:
    run, _ = read_back(store, experiment, an_answer())
    odd = {**run.metrics, "gen/generate_s": float("nan"), "gen/wall_s": 1.7976931348623157e308}
    cell = stored_cell(run._replace(metrics=odd))
    assert not {"gen/generate_s", "gen/wall_s"} & cell.metrics.keys()
    assert cell.metrics["answer/candidates"] == 2
