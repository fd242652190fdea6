"""The set-up as a whole: what is done in which order, and what is left out when Airflow is away."""

from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from tests.airflow.fake_airflow import ADDRESS, DAG, FakeAirflow
from tipbench.airflow.dag_file import FILE, dag_text
from tipbench.airflow.prerequisites import Check
from tipbench.airflow.setup import Setup, expected_hosts, given_hosts, steps
from tipbench.core.errors import InvalidInput

HOSTS = ("http://gpu1:11434", "http://gpu2:11434")
POOLS = ["ollama_gpu1_11434", "ollama_gpu2_11434"]
BY_HAND = (
    'from tipbench.airflow.dag import bench_collect\n\ndag = bench_collect("http://gpu1:11434", schedule="@weekly")\n'
)


def _setup(folder: Path, hosts: tuple[str, ...] | None = HOSTS, only_check: bool = False) -> Setup:
    moments = iter(range(0, 10_000, 20))
    return Setup(folder, hosts, only_check, lambda _text: None, lambda: next(moments), lambda _seconds: None)


def _short(checks: list[Check]) -> list[tuple[bool | None, str]]:
    return [(check.good, check.what) for check in checks]


def test_writes_the_file_makes_the_pools_and_finds_the_dag(tmp_path: Path) -> None:
    airflow = FakeAirflow(dag=DAG, dag_pools=POOLS)
    done = list(steps(_setup(tmp_path), airflow.api()))
    assert _short(done) == [
        (True, what) for what in ("file", "airflow", "scheduler", "dag-processor", "pool", "pool", "dag")
    ]
    assert (tmp_path / FILE).read_text() == dag_text(HOSTS)
    assert airflow.pools == dict.fromkeys(POOLS, 1)


def test_a_check_writes_nothing_anywhere(tmp_path: Path) -> None:
    airflow = FakeAirflow()
    found = list(steps(_setup(tmp_path / "dags", only_check=True), airflow.api()))
    assert _short(found)[-3:] == [(False, "pool"), (False, "pool"), (False, "dag")]
    assert airflow.changes == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("only_check", [True, False])
def test_of_a_file_changed_by_hand_airflow_knows_the_hosts(only_check: bool, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(BY_HAND)
    airflow = FakeAirflow(dag=DAG, dag_pools=POOLS[:1], pools={POOLS[0]: 3})
    done = list(steps(_setup(tmp_path, None, only_check), airflow.api()))
    assert _short(done)[-2:] == [(not only_check, "pool"), (True, "dag")]
    assert airflow.pools == {POOLS[0]: 3 if only_check else 1}


def test_a_file_changed_by_hand_has_to_fit_the_hosts_that_are_given(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(BY_HAND)
    *_, dag = steps(_setup(tmp_path), FakeAirflow(dag=DAG, dag_pools=POOLS[:1]).api())
    assert dag.good is False
    assert "should be for ollama_gpu1_11434, ollama_gpu2_11434" in dag.text


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        (httpx.ConnectError("refused"), "can't be reached"),
        (httpx.ReadTimeout("slow"), "did not answer in time"),
        (httpx.Response(401, json={"detail": "Invalid credentials"}), "TIPBENCH_AIRFLOW_PASSWORD"),
        (httpx.Response(200, html="<html>a portal"), "is not an Airflow 3"),
        (httpx.Response(302, headers={"Location": "https://login.example"}), "redirects to another address"),
        (httpx.Response(404, html="<html>Airflow 2"), "check TIPBENCH_AIRFLOW_URL"),
        (httpx.Response(500, text="oh"), "500"),
    ],
)
def test_an_airflow_that_can_t_be_asked_is_one_line_and_the_file_is_there(
    instead: httpx.Response | Exception, said: str, tmp_path: Path
) -> None:
    file, airflow = steps(_setup(tmp_path), FakeAirflow(instead=instead).api())
    assert (file.good, airflow.good) == (True, False)
    assert said in airflow.text
    assert ADDRESS in airflow.text
    assert "s3cret" not in airflow.text
    assert (tmp_path / FILE).is_file()


def test_an_old_airflow_is_not_changed(tmp_path: Path) -> None:
    airflow = FakeAirflow(version="2.11.0")
    assert _short(list(steps(_setup(tmp_path), airflow.api()))) == [(True, "file"), (False, "airflow")]
    assert airflow.changes == []


def _no_file(_folder: Path) -> None:
    """Nobody has written one."""


@pytest.mark.parametrize(
    ("write", "given", "expected"),
    [
        (_no_file, None, None),
        (_no_file, HOSTS, HOSTS),
        (lambda folder: (folder / FILE).write_text(dag_text(HOSTS)), None, HOSTS),
        (lambda folder: (folder / FILE).write_text(BY_HAND), None, None),
    ],
)
def test_which_hosts_airflow_should_know(
    write: Callable[[Path], None], given: tuple[str, ...] | None, expected: tuple[str, ...] | None, tmp_path: Path
) -> None:
    write(tmp_path)
    assert expected_hosts(_setup(tmp_path, given)) == expected


def test_hosts_of_the_flag() -> None:
    assert given_hosts(None) is None
    assert given_hosts(" http://gpu1:11434/ , http://gpu2:11434") == HOSTS


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "must start with http"),
        ("gpu1", "must start with http"),
        ("http://localhost:11434,http://127.0.0.1:11434", "twice"),
        ("http://me:s3cret@gpu1:11434", "user name or password"),
        ("http://gpu-1:11434,http://gpu.1:11434", "share a pool"),
        ('http://gpu1:11434/")\nimport os', "addresses don't have"),
        ("http://gpü:11434", "addresses don't have"),
        ("http://gpu\udcff:11434", "addresses don't have"),
    ],
)
def test_hosts_that_can_t_be_used_are_refused(given: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        given_hosts(given)
    assert "s3cret" not in str(refused.value)
