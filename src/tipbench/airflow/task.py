"""Runs a phase as an Airflow task: reports errors to users, and lets Airflow retry only where that may help."""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tipbench.airflow.remote.records import PLAN, PLANNED, PROBLEM, RETURNED
from tipbench.airflow.request import CellsFailed, TaskTerminated, user_message
from tipbench.core.errors import EngineError, JudgeFailed, ModelMissing, TipbenchError, TrackingUnreachable
from tipbench.core.untrusted import printable

_TRANSIENT = (EngineError, TrackingUnreachable, JudgeFailed, CellsFailed, TaskTerminated)  # a retry may help


@contextmanager
def report_errors() -> Iterator[None]:
    """Report errors in the log and in an XCom, without a traceback if users can fix them; let Airflow retry or fail."""
    try:
        yield
    except TipbenchError as error:
        text = user_message(error)
        xcom_pusher(PROBLEM)(text)
        if isinstance(error, _TRANSIENT) and not isinstance(error, ModelMissing):
            raise AirflowException(text) from None
        raise AirflowFailException(text) from None
    except Exception as error:
        xcom_pusher(PROBLEM)(user_message(error))
        raise


@contextmanager
def graceful_termination() -> Iterator[None]:
    """On SIGTERM, let the task unload its model and deliver its results in the seconds that Airflow allows for it."""
    received = 0

    def terminate(*_: object) -> None:
        nonlocal received
        received += 1
        if received == 1:  # a second signal must not interrupt the cleanup
            raise KeyboardInterrupt

    previous = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt:
        raise TaskTerminated("stopped from outside; everything done so far is stored") from None
    finally:
        signal.signal(signal.SIGTERM, previous)


def read_plan() -> Mapping[str, Any]:
    """Return the plan. Without one, fail the task but push no problem: `plan` has failed and pushed its own."""
    found = pull_xcom(PLAN, PLANNED)
    if not found:
        raise AirflowFailException("there is no plan; see why 'plan' failed, and clear it")
    planned: Mapping[str, Any] = found
    return planned


def pull_xcom(task_id: str, key: str = RETURNED) -> Any:
    return get_current_context()["ti"].xcom_pull(task_ids=task_id, key=key)


def xcom_pusher(key: str) -> Callable[[Any], None]:
    """Return a function that pushes its argument as an XCom of the current task under this key."""
    ti = get_current_context()["ti"]
    return lambda value: ti.xcom_push(key, value)


def say(text: str) -> None:
    """Print to the task's log, with control characters escaped: names are chosen by whoever started the run."""
    print(printable(text))
