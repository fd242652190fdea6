"""Where workers keep results: an MLflow server, which all of them can reach."""

from collections.abc import Callable
from typing import Any

from tipbench.bench.bench import Bench, Context, Observer
from tipbench.bench.options import Options
from tipbench.bench.tracking.address import DEFAULT_SERVER
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings
from tipbench.core.untrusted import without_credentials

Say = Callable[[str], None]


class TaskLog(Observer):
    """Writes what a bench notes to a task's log."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def note(self, text: str) -> None:
        self._say(text)


def shared_bench(options: Options, settings: Settings, observer: Observer, **changed: Any) -> Bench:
    """A bench whose results all workers see; `changed` are options for this worker alone."""
    shared = shared_address(options.mlflow_url, settings)
    return Bench.of(options.model_copy(update={**changed, "mlflow_url": shared}), Context(settings, observer))


def shared_address(url: str | None, settings: Settings) -> str:
    """Never a database file: what one worker writes there, another can't see, and it goes with the worker's disk.

    The plan names the place without credentials; a worker whose own setting names the same place takes them from there.
    """
    own = settings.get("MLFLOW_TRACKING_URI")
    is_own = not url or without_credentials(own) == without_credentials(url)
    named = (own if is_own else url) or DEFAULT_SERVER
    if not named.startswith(("http://", "https://")):
        raise InvalidInput(
            f"mlflow_url: {without_credentials(named)} can't be seen by every worker; give the address of an MLflow "
            "server, here or as MLFLOW_TRACKING_URI on the workers"
        )
    return named
