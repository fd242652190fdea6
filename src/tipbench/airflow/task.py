"""How a phase runs as a task: what goes wrong is told to who reads the run, and tried again only if that may help."""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from tipbench.airflow.remote.records import PLAN, PLANNED, PROBLEM, RETURNED
from tipbench.airflow.request import CellsFailed, EndedFromOutside, words_of
from tipbench.core.errors import EngineError, JudgeFailed, ModelMissing, TipbenchError, TrackingUnreachable
from tipbench.core.untrusted import printable

_PASSING = (EngineError, TrackingUnreachable, JudgeFailed, CellsFailed, EndedFromOutside)  # may be mended by then


@contextmanager
def told() -> Iterator[None]:
    """Puts what went wrong into words, in the log and in an XCom; no traceback for what users can mend."""
    try:
        yield
    except TipbenchError as error:
        text = words_of(error)
        pushed(PROBLEM)(text)
        if isinstance(error, _PASSING) and not isinstance(error, ModelMissing):
            raise AirflowException(text) from None
        raise AirflowFailException(text) from None
    except Exception as error:
        pushed(PROBLEM)(words_of(error))
        raise


@contextmanager
def ended_tidily() -> Iterator[None]:
    """Ended from outside, a task unloads its model and delivers what it has, in the seconds that Airflow gives it."""
    received = 0

    def end(*_: object) -> None:
        nonlocal received
        received += 1
        if received == 1:  # a second one must not break off what the first one began
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    except KeyboardInterrupt:
        raise EndedFromOutside("ended from outside; what was done is stored") from None
    finally:
        signal.signal(signal.SIGTERM, before)


def of_plan() -> Mapping[str, Any]:
    """What was planned. Where `plan` has failed, it has said why, and nothing is to be added to that."""
    found = pulled(PLAN, PLANNED)
    if not found:
        raise AirflowFailException("there is no plan to go by; see why 'plan' failed, and clear it")
    planned: Mapping[str, Any] = found
    return planned


def pulled(task_id: str, key: str = RETURNED) -> Any:
    return get_current_context()["ti"].xcom_pull(task_ids=task_id, key=key)


def pushed(key: str) -> Callable[[Any], None]:
    ti = get_current_context()["ti"]
    return lambda value: ti.xcom_push(key, value)


def say(text: str) -> None:
    """Into the task's log. Names come from whoever began the run, and some readers of logs obey what they read."""
    print(printable(text))
