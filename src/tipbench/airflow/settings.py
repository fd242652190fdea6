"""Airflow's own settings that say where its DAGs folder is; services and `tipbench airflow init` read the same."""

import os
from pathlib import Path

from tipbench.core.settings import Setting, Settings

HOME = Setting("AIRFLOW_HOME", "~/airflow", "Airflow's folder.")
DAGS_FOLDER = Setting("AIRFLOW__CORE__DAGS_FOLDER", "", "Where Airflow looks for DAGs; default: dags in its folder.")


def dags_folder(settings: Settings) -> Path:
    given = settings.value(DAGS_FOLDER) or f"{settings.value(HOME)}/dags"
    return Path(os.path.expanduser(given)).absolute()  # noqa: PTH111 - the other one raises for ~nobody
