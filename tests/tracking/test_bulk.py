"""Many runs in one transaction are the same runs as MLflow's own calls write one by one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tipbench.errors import TrackingError
from tipbench.tracking import bulk
from tipbench.tracking.embedded import EmbeddedMlflow
from tipbench.tracking.interface import StoredRun
from tipbench.tracking.store import RunDraft, RunStore

DRAFT = RunDraft(
    name="m × v1 × s1",
    started_ms=1_000,
    ended_ms=2_000,
    tags={"tipbench.kind": "cell", "odd": "émoji 😀 'quoted'"},
    params={"model": "m", "temperature": "0.7"},
    metrics={"gen/load_s": 0.25, "answer/candidates": 5.0},
    texts={"raw.txt": "an answer\x00 with a NUL", "rubric.md": "# Rubric"},
)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[EmbeddedMlflow]:
    opened = EmbeddedMlflow(f"sqlite:///{tmp_path / 'm.db'}")
    yield opened
    opened.close()


def _by_name(store: RunStore, name: str) -> list[StoredRun]:
    return [run for run in store.runs(store.experiment("x"), {}) if run.tags["mlflow.runName"] == name]


def test_a_run_of_a_bulk_is_a_run_like_any_other(api: EmbeddedMlflow) -> None:
    store = RunStore(api)
    experiment = store.ensure_experiment("x", {})
    store.write_run(experiment, replace(DRAFT, name="plain"))
    store.write_runs(experiment, [replace(DRAFT, name=f"bulk {n}") for n in range(3)])
    (plain,) = _by_name(store, "plain")
    for n in range(3):
        (found,) = _by_name(store, f"bulk {n}")
        assert store.text(found, "raw.txt") == DRAFT.texts["raw.txt"]
        same = replace(
            found,
            run_id=plain.run_id,
            artifact_uri=found.artifact_uri.replace(found.run_id, plain.run_id),
            tags={**found.tags, "mlflow.runName": "plain"},
        )
        assert same == plain


def test_a_run_of_a_bulk_can_be_extended_and_a_lower_score_replaces_a_higher_one(api: EmbeddedMlflow) -> None:
    store = RunStore(api)
    store.write_runs(store.ensure_experiment("x", {}), [replace(DRAFT, metrics={"composite": 12.0})])
    (run,) = _by_name(store, DRAFT.name)
    store.extend_run(run, {"judge_pending": "false"}, {"composite": 9.0}, at_ms=DRAFT.ended_ms)
    (again,) = _by_name(store, DRAFT.name)
    assert again.metrics["composite"] == 9.0
    assert again.tags["judge_pending"] == "false"


def test_a_bulk_is_written_whole_or_not_at_all(api: EmbeddedMlflow, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(api)
    experiment = store.ensure_experiment("x", {})
    place = api.reserve_run(experiment)
    monkeypatch.setattr(api, "reserve_run", lambda _: place)  # two runs of one id: the second can't be written
    with pytest.raises(TrackingError):
        store.write_runs(experiment, [DRAFT, replace(DRAFT, name="second")])
    assert store.runs(experiment, {}) == []


def test_a_database_of_another_schema_is_written_by_mlflows_own_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "TESTED_SCHEMAS", frozenset({"of another version"}))
    api = EmbeddedMlflow(f"sqlite:///{tmp_path / 'm.db'}")
    store = RunStore(api)
    experiment = store.ensure_experiment("x", {})
    assert api.reserve_run(experiment) is None
    store.write_runs(experiment, [DRAFT])
    assert len(_by_name(store, DRAFT.name)) == 1
    api.close()
