"""Which MLflow to use. What the user names is used and never anything else; without that, a server on this
machine or a database of our own, and one line that says so."""

import json
from collections.abc import Callable
from typing import NamedTuple

from tipbench.bench.tracking.embedded import SCHEME, EmbeddedMlflow
from tipbench.bench.tracking.interface import MlflowApi
from tipbench.bench.tracking.store import RunStore
from tipbench.bench.tracking.tables import COMMAND_BUSY_S
from tipbench.core.errors import InvalidInput, TrackingError, TrackingUnreachable
from tipbench.core.files import atomic_write, make_private_folder
from tipbench.core.paths import database_path, experiment_note_path
from tipbench.core.settings import Settings
from tipbench.core.untrusted import without_credentials

DEFAULT_SERVER = "http://localhost:5000"


class OpenedStore(NamedTuple):
    store: RunStore
    notice: str  # what a user should know about the choice; empty when they made it


def open_store(
    url: str | None,
    settings: Settings,
    experiment: str | None = None,
    create: bool = False,
    busy_s: float = COMMAND_BUSY_S,
) -> OpenedStore:
    """The store at the URL, or at $MLFLOW_TRACKING_URI, or where it falls back to without both.

    A database file that isn't there is made only with `create`; one that is locked is waited for so long.
    """
    named = url or settings.get("MLFLOW_TRACKING_URI")
    if named:
        return OpenedStore(RunStore(_open(named, settings, create, busy_s)), "")
    kept_at = _kept_at(settings, experiment) if experiment else None
    if kept_at not in (None, DEFAULT_SERVER, own_database(settings)):
        raise InvalidInput(
            f"experiment '{experiment}' was last collected into {kept_at}; add --mlflow-url {kept_at}, or name another "
            f"place where it is, such as --mlflow-url {own_database(settings)}"
        )
    opened = _fallback(settings, create)
    if kept_at not in (None, opened.store.address):
        opened.store.close()
        raise InvalidInput(
            f"experiment '{experiment}' is kept at {kept_at}, and no address was given, so that "
            f"{opened.store.address} would be used; make {kept_at} reachable, or say which you mean with --mlflow-url"
        )
    return opened


def remember(settings: Settings, experiment: str, address: str, suite: str) -> None:
    """Notes where an experiment is kept, so that it is never silently continued elsewhere, and of which suite it is."""
    path = experiment_note_path(settings.home, experiment)
    make_private_folder(path.parent)
    atomic_write(path, json.dumps({"experiment": experiment, "kept_at": address, "suite": suite}))


def remembered_suite(settings: Settings, experiment: str) -> str | None:
    """The folder of the suite that the experiment was last collected with on this machine."""
    try:
        found = json.loads(experiment_note_path(settings.home, experiment).read_text()).get("suite")
    except (OSError, ValueError, AttributeError):
        return None  # it only saves somebody a flag
    return found if isinstance(found, str) else None


def own_database(settings: Settings) -> str:
    return f"{SCHEME}{database_path(settings.home)}"


def _fallback(settings: Settings, create: bool) -> OpenedStore:
    client = _server(DEFAULT_SERVER, settings)
    try:
        client.find_experiment("Default")  # an API route: a server's health says nothing about its host check
    except TrackingUnreachable:
        reason = f"No MLflow server at {DEFAULT_SERVER}"
    except TrackingError as error:
        reason = f"What answers at {DEFAULT_SERVER} can't be used ({error})"
    else:
        return OpenedStore(RunStore(client), f"Results go to the MLflow server at {DEFAULT_SERVER}.")
    client.close()
    if create:
        make_private_folder(settings.home)
    store = RunStore(EmbeddedMlflow(own_database(settings), create, is_own=True))
    verb = "go to" if create else "are read from"
    return OpenedStore(store, f"{reason}: results {verb} tipbench's own database, {store.address}")


def _server(url: str, settings: Settings) -> MlflowApi:
    from tipbench.bench.tracking.mlflow_client import MlflowClient  # brings an HTTP client, which a file does without

    return MlflowClient(url, settings)


def _open(url: str, settings: Settings, create: bool, busy_s: float) -> MlflowApi:
    kinds: dict[str, Callable[[], MlflowApi]] = {
        SCHEME: lambda: EmbeddedMlflow(url, create, busy_s=busy_s),
        "http://": lambda: _server(url, settings),
        "https://": lambda: _server(url, settings),
    }
    for start, make in kinds.items():
        if url.startswith(start) and len(url) > len(start):
            return make()
    raise InvalidInput(
        f"MLflow address {without_credentials(url)!r} can't be used; give http://…, https://… or sqlite:///FILE"
    )


def _kept_at(settings: Settings, experiment: str) -> str | None:
    """Where the experiment was collected last; None when it never was."""
    path = experiment_note_path(settings.home, experiment)
    if not path.is_file():
        return None
    try:
        return str(json.loads(path.read_text())["kept_at"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidInput(
            f"{path}, which says where experiment '{experiment}' is kept, can't be read; say where with --mlflow-url"
        ) from None
