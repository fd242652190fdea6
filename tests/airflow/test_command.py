"""`tipbench airflow init`, as a user sees it."""

from pathlib import Path

import httpx
import pytest

from tests.airflow.fake_airflow import ADDRESS, DAG, ENVIRONMENT, FakeAirflow
from tests.bench.engines.stand_in import Reply, StandIn, free_address
from tests.integration.command import Finished, tipbench, tipbench_process
from tipbench.airflow import command
from tipbench.airflow.dag_file import FILE
from tipbench.airflow.remote.client import AirflowApi


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in {**ENVIRONMENT, "MLFLOW_TRACKING_URI": free_address()}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TIPBENCH_AIRFLOW_TOKEN", raising=False)
    return tmp_path


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> FakeAirflow:
    fake = FakeAirflow(dag=DAG)
    monkeypatch.setattr(command, "AirflowApi", lambda settings: AirflowApi(settings, httpx.MockTransport(fake.answer)))
    return fake


def _init(folder: Path, ollama: str, *flags: str) -> Finished:
    return tipbench("airflow", "init", "--dags-folder", str(folder), "--ollama-url", ollama, *flags)


def _pool(ollama: str) -> str:
    return f"ollama_localhost_{ollama.rsplit(':', 1)[1]}"


def test_all_is_well_and_the_next_command_names_a_model_that_is_there(
    folder: Path, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StandIn() as ollama, StandIn() as mlflow:
        ollama.on("/api/tags", Reply({"models": [{"name": "it's:1b"}]}))
        ollama.on("/api/show", Reply({"details": {}, "model_info": {}}))
        mlflow.on("/api/2.0/mlflow/experiments/search", Reply({"experiments": []}))
        monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow.url)
        airflow.dag_pools = [_pool(ollama.url)]
        done = _init(folder, ollama.url)
        assert f"MLFLOW_TRACKING_URI={mlflow.url}" in done.out
    assert done.status == 0, done.out
    assert "✗" not in done.out
    conf = """'{"models": "it'"'"'s:1b"}'"""
    assert done.out.splitlines()[-1] == f"All set, for example: airflow dags trigger bench_collect --conf {conf}"
    assert f'"{ollama.url}"' in (folder / FILE).read_text()


def test_what_is_missing_is_counted_and_an_ollama_out_of_sight_is_none_of_it(
    folder: Path, airflow: FakeAirflow
) -> None:
    ollama = free_address()
    airflow.dag_pools = [_pool(ollama)]
    done = _init(folder, ollama)
    assert done.status == 1
    assert [line.split()[1] for line in done.out.splitlines() if line.startswith("✗")] == ["mlflow"]
    assert [line.split()[1] for line in done.out.splitlines() if line.startswith("·")] == ["ollama"]
    assert done.out.splitlines()[-1] == "Not ready: 1 thing is missing."


def test_a_check_leaves_everything_as_it_is(folder: Path, airflow: FakeAirflow) -> None:
    done = _init(folder, free_address(), "--check")
    assert done.status == 1
    assert airflow.changes == []
    assert list(folder.iterdir()) == []


def test_a_database_file_is_no_store_for_workers(
    folder: Path, airflow: FakeAirflow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "sqlite:///here.db")
    done = _init(folder, free_address(), "--check")
    assert "is not visible to every worker" in done.out


@pytest.mark.parametrize("only_check", [(), ("--check",)])
def test_without_an_airflow_it_says_what_to_start(folder: Path, only_check: tuple[str, ...]) -> None:
    away = free_address()
    done = tipbench_process("airflow", "init", "--dags-folder", str(folder), *only_check, TIPBENCH_AIRFLOW_URL=away)
    assert done.status == 1
    assert f"✗ airflow       Airflow at {away} can't be reached" in done.out
    assert (folder / FILE).is_file() is not bool(only_check)


def test_somebody_elses_file_is_refused_before_anything_is_asked(folder: Path, airflow: FakeAirflow) -> None:
    (folder / FILE).write_text("import airflow\n")
    done = _init(folder, free_address())
    assert done.status == 2
    assert "Move it away" in done.err
    assert ADDRESS not in done.out
    assert airflow.changes == []


def test_help_shows_examples() -> None:
    done = tipbench("airflow", "init", "--help")
    assert done.status == 0
    assert "--ollama-url http://gpu1:11434,http://gpu2:11434" in done.out.split("Examples:")[1]
