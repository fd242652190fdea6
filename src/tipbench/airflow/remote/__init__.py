"""Runs on an Apache Airflow, for those who outgrow one machine."""

from collections.abc import Callable
from pathlib import Path

from tipbench.core.settings import Settings
from tipbench.server.jobs.interface import Runner


def open_runner(
    address: str,
    home: Path,  # noqa: ARG001 - one signature for all
    settings: Settings,
    clock: Callable[[], float],
    new_id: Callable[[], str],
) -> Runner:
    """Asks Airflow nothing yet: a server starts while it is away."""
    from tipbench.airflow.remote.answers import Answers
    from tipbench.airflow.remote.calls import Calls
    from tipbench.airflow.remote.client import AirflowApi  # brings an HTTP client
    from tipbench.airflow.remote.runner import AirflowRunner
    from tipbench.bench.tracking.embedded import SCHEME

    calls = Calls(AirflowApi(settings))
    answers = None if address.startswith(SCHEME) else Answers(calls, address, settings)
    return AirflowRunner(calls, answers, clock, new_id)
