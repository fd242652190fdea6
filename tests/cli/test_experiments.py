"""Experiments are listed, deleted and restored; those of somebody else are left alone."""

import io
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tipbench.bench.tracking.embedded import EmbeddedMlflow
from tipbench.bench.tracking.store import RunDraft, RunStore

COLLECT = ("--models", "scripted/a", "--n-scenarios", "1", "--experiment", "tip-bench-x")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'm.db'}"


def test_an_experiment_can_be_deleted_and_brought_back(url: str) -> None:
    tipbench(
        "collect", "--models", "scripted/a", "--n-scenarios", "1", "--experiment", "tip-bench-x", "--mlflow-url", url
    )
    assert "tip-bench-x" in tipbench("experiments", "list", "--mlflow-url", url).out
    assert tipbench("experiments", "delete", "tip-bench-x", "--yes", "--mlflow-url", url).status == 0
    assert "tip-bench-x" not in tipbench("experiments", "list", "--mlflow-url", url).out
    refused = tipbench("collect", "--models", "scripted/a", "--experiment", "tip-bench-x", "--mlflow-url", url)
    assert refused.status == 2
    assert "tipbench experiments restore tip-bench-x" in refused.err
    assert tipbench("experiments", "restore", "tip-bench-x", "--mlflow-url", url).status == 0
    assert "tip-bench-x" in tipbench("experiments", "show", "tip-bench-x", "--mlflow-url", url).out


def test_somebody_elses_experiment_is_neither_deleted_nor_written_to(url: str) -> None:
    api = EmbeddedMlflow(url)
    store = RunStore(api)
    store.write_run(store.ensure_experiment("fraud-model", {}), RunDraft("theirs", 1, 2))
    api.close()
    for command in (
        ("experiments", "delete", "fraud-model", "--yes"),
        ("collect", "--models", "scripted/a", "--experiment", "fraud-model"),
    ):
        refused = tipbench(*command, "--mlflow-url", url)
        assert refused.status == 2
        assert "1 runs that tipbench did not make" in refused.err


def test_a_question_that_nobody_answers_deletes_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tipbench(
        "collect", "--models", "scripted/a", "--n-scenarios", "1", "--experiment", "tip-bench-x", "--mlflow-url", url
    )
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert tipbench("experiments", "delete", "tip-bench-x", "--mlflow-url", url).status == 2
    assert "tip-bench-x" in tipbench("experiments", "list", "--mlflow-url", url).out
