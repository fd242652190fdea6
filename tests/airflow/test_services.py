"""Which Airflow answers, and whether it is at work."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.airflow.fake_airflow import FakeAirflow
from tipbench.airflow.setup import TESTED, check_health, check_version

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_the_tested_version_is_the_one_of_the_extra() -> None:
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert extras["airflow"] == [f"apache-airflow=={TESTED}"]


@pytest.mark.parametrize(
    ("version", "good", "said"),
    [
        ("3.3.2", True, "Airflow 3.3.2"),
        ("3.4.0", True, f"(tested with {TESTED})"),
        ("2.11.0", False, "tipbench needs Airflow 3"),
        ("\x1b[31m3", False, "tipbench needs Airflow 3"),
        (None, False, "check TIPBENCH_AIRFLOW_URL"),
    ],
)
def test_versions(version: str | None, good: bool, said: str) -> None:
    check = check_version(FakeAirflow(version=version).api())
    assert check.good is good
    assert said in check.text
    assert "\x1b" not in check.text


@pytest.mark.parametrize(
    ("status", "said"),
    [("unhealthy", "is unhealthy"), (None, "does not respond"), ({}, "is {}"), ("\x1b[2J", "\\u001b")],
)
def test_a_service_that_is_not_healthy_is_to_be_started(status: Any, said: str) -> None:
    airflow = FakeAirflow(health={"scheduler": {"status": "healthy"}, "dag_processor": {"status": status}})
    scheduler, processor = check_health(airflow.api())
    assert scheduler.good
    assert processor.good is False
    assert said in processor.text
    assert "airflow dag-processor" in processor.text


@pytest.mark.parametrize("health", [{"scheduler": "up"}, {"scheduler": []}, {"metadatabase": {}}])
def test_an_answer_of_another_shape_is_no_health(health: dict[str, Any]) -> None:
    assert [check.good for check in check_health(FakeAirflow(health=health).api())] == [False, False]
