"""Where Airflow's DAGs folder is."""

from pathlib import Path

import pytest

from tipbench.airflow.request import dags_folder
from tipbench.core.settings import Settings


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"AIRFLOW_HOME": "/srv/airflow"}, Path("/srv/airflow/dags")),
        ({"AIRFLOW_HOME": "/srv/airflow", "AIRFLOW__CORE__DAGS_FOLDER": "/srv/dags"}, Path("/srv/dags")),
        ({}, Path.home() / "airflow" / "dags"),
        ({"AIRFLOW_HOME": "~/flow"}, Path.home() / "flow" / "dags"),
    ],
)
def test_as_airflow_itself_finds_it(environment: dict[str, str], folder: Path) -> None:
    assert dags_folder(Settings(environment)) == folder
