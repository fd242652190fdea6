"""A job runner for Apache Airflow, for those who outgrow one machine."""

from collections.abc import Callable
from pathlib import Path

from tipbench.core.settings import Settings
from tipbench.server.jobs.interface import Runner


def open_runner(
    address: str,
    home: Path,  # noqa: ARG001 - the signature of all runners
    settings: Settings,
    clock: Callable[[], float],
    new_id: Callable[[], str],
) -> Runner:
    """Open the runner without contacting Airflow, so that a server can start while Airflow is unreachable."""
    from tipbench.airflow.remote.answers import AnswerThread
    from tipbench.airflow.remote.calls import DagClient
    from tipbench.airflow.remote.client import AirflowApi  # imports an HTTP client
    from tipbench.airflow.remote.runner import AirflowRunner
    from tipbench.bench.tracking.embedded import SCHEME

    client = DagClient(AirflowApi(settings))
    answers = None if address.startswith(SCHEME) else AnswerThread(client, address, settings)
    return AirflowRunner(client, answers, clock, new_id)
