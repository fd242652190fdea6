"""Chooses which MLflow to use: exactly the one that the user names; by default a server on this machine or a database
of our own, with a one-line notice about the choice."""

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import NamedTuple

from tipbench.bench.tracking.embedded import SCHEME, EmbeddedMlflow
from tipbench.bench.tracking.interface import MlflowApi
from tipbench.bench.tracking.runs import CELL_TEXTS
from tipbench.bench.tracking.store import RunStore
from tipbench.bench.tracking.tables import COMMAND_BUSY_S
from tipbench.core.errors import InvalidInput, NothingStored, TrackingError, TrackingUnreachable
from tipbench.core.files import atomic_write, make_private_folder
from tipbench.core.paths import database_path, experiment_note_path
from tipbench.core.settings import Settings
from tipbench.core.untrusted import shown, without_credentials

DEFAULT_SERVER = "http://localhost:5000"


class OpenedStore(NamedTuple):
    store: RunStore
    notice: str  # what the user should know about the choice; empty if they made it


def open_store(
    url: str | None,
    settings: Settings,
    experiment: str | None = None,
    create: bool = False,
    busy_s: float = COMMAND_BUSY_S,
) -> OpenedStore:
    """Open the store at the URL, at $MLFLOW_TRACKING_URI, or at the default location.

    A missing database file is created only with `create`; `busy_s` is how long to wait for a locked one. Raises
    InvalidInput if the experiment was last collected into another store than the default one.
    """
    also_tagged = _also_tagged(settings)
    named = url or settings.get("MLFLOW_TRACKING_URI")
    if named:
        return OpenedStore(RunStore(_open(named, settings, create, busy_s), also_tagged), "")
    address = _last_address(settings, experiment) if experiment else None
    if address not in (None, DEFAULT_SERVER, own_database_url(settings)):
        raise InvalidInput(
            f"experiment '{experiment}' was last collected into {address}; add --mlflow-url {address}, or name "
            f"another store that holds it, such as --mlflow-url {own_database_url(settings)}"
        )
    opened = _fallback(settings, create, also_tagged)
    if address not in (None, opened.store.address):
        opened.store.close()
        raise InvalidInput(
            f"experiment '{experiment}' is stored at {address}, but without an address {opened.store.address} would "
            f"be used; make {address} reachable, or choose one with --mlflow-url"
        )
    return opened


def store_address(url: str | None, settings: Settings, say: Callable[[str], None]) -> str:
    """Choose the store of a server once, so that all its parts use the same one, whatever answers at the default later.

    Raises InvalidInput for an address with credentials.
    """
    named = url or settings.get("MLFLOW_TRACKING_URI")
    if named.rstrip("/") != without_credentials(named) and not named.startswith(SCHEME):
        raise InvalidInput(
            f"the MLflow address {without_credentials(named)} was given with a user name or password, which every job "
            "would show; set MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD instead"
        )
    try:
        opened = open_store(url, settings)
    except NothingStored:
        return named or own_database_url(settings)
    try:
        if opened.notice:
            say(opened.notice)
        if opened.store.is_shared:
            with suppress(TrackingError):  # reported when it is used
                opened.store.find_experiment("Default")
        if notice := prefix_notice(opened.store):
            say(notice)
        return opened.store.under_prefix or opened.store.address
    finally:
        opened.store.close()


def prefix_notice(store: RunStore) -> str:
    """Return what to tell the user if MLflow was found below the address; empty if it is where they said."""
    if not store.under_prefix:
        return ""
    return (
        f"MLflow was found at {store.under_prefix}, not at {store.address}: set that address with --mlflow-url or "
        "MLFLOW_TRACKING_URI."
    )


def remember_experiment(settings: Settings, experiment: str, address: str, suite: str) -> None:
    """Record where an experiment is stored, so that it is never silently continued elsewhere, and its suite."""
    path = experiment_note_path(settings.home, experiment)
    make_private_folder(path.parent)
    atomic_write(path, json.dumps({"experiment": experiment, "kept_at": address, "suite": suite}))


def remembered_suite(settings: Settings, experiment: str) -> str | None:
    """Return the suite folder of the experiment's last collection on this machine; None if unknown."""
    try:
        found = json.loads(experiment_note_path(settings.home, experiment).read_text()).get("suite")
    except (OSError, ValueError, AttributeError):
        return None  # not an error: it only saves the user a flag
    return found if isinstance(found, str) else None


def own_database_url(settings: Settings) -> str:
    return f"{SCHEME}{database_path(settings.home)}"


def _fallback(settings: Settings, create: bool, also_tagged: Collection[str]) -> OpenedStore:
    client = _server(DEFAULT_SERVER, settings)
    try:
        client.find_experiment("Default")  # an API route, because /health skips the host check
    except TrackingUnreachable:
        reason = f"No MLflow server at {DEFAULT_SERVER}"
    except TrackingError as error:
        reason = f"The server at {DEFAULT_SERVER} can't be used ({error})"
    else:
        notice = f"Results go to the MLflow server at {DEFAULT_SERVER}."
        return OpenedStore(RunStore(client, also_tagged), notice)
    client.close()
    if create:
        make_private_folder(settings.home)
    store = RunStore(EmbeddedMlflow(own_database_url(settings), create, is_own=True), also_tagged)
    verb = "go to" if create else "are read from"
    return OpenedStore(store, f"{reason}: results {verb} tipbench's own database, {store.address}")


def _also_tagged(settings: Settings) -> Collection[str]:
    name, known = "TIPBENCH_ARTIFACT_TAGS", {"fallback": (), "always": CELL_TEXTS}
    given = settings.get(name)
    if given not in known:
        raise InvalidInput(f"{name} must be {' or '.join(known)}; it is {shown(given)}")
    return known[given]


def _server(url: str, settings: Settings) -> MlflowApi:
    from tipbench.bench.tracking.mlflow_client import MlflowClient  # imports httpx, which a file does not need

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
        f"MLflow address {without_credentials(url)!r} can't be used; use http://…, https://… or sqlite:///FILE"
    )


def _last_address(settings: Settings, experiment: str) -> str | None:
    """Return the address of the store of the experiment's last collection; None if there was none."""
    path = experiment_note_path(settings.home, experiment)
    if not path.is_file():
        return None
    try:
        return str(json.loads(path.read_text())["kept_at"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidInput(
            f"{path}, which records where experiment '{experiment}' is stored, can't be read; name the store with "
            "--mlflow-url"
        ) from None
