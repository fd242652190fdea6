"""Which MLflow to use. What the user names is used and never anything else; without that, a server on this
machine or a database of our own, and one line that says so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tipbench.errors import InvalidInput, TipbenchError, TrackingError, TrackingUnreachable
from tipbench.identity import text_digest
from tipbench.settings import Settings
from tipbench.tracking.embedded import SCHEME, EmbeddedMlflow
from tipbench.tracking.interface import MlflowApi
from tipbench.tracking.mlflow_client import MlflowClient
from tipbench.tracking.store import RunStore
from tipbench.untrusted import without_credentials

DEFAULT_SERVER = "http://localhost:5000"


class OpenedStore(NamedTuple):
    store: RunStore
    notice: str  # what a user should know about the choice; empty when they made it


def open_store(url: str | None, settings: Settings, experiment: str | None = None, create: bool = False) -> OpenedStore:
    """The store at the URL, or at $MLFLOW_TRACKING_URI, or where it falls back to without both.

    A database file that isn't there is made only with `create`.
    """
    named = url or settings.get("MLFLOW_TRACKING_URI")
    if named:
        opened = OpenedStore(RunStore(_open(named, settings, create)), "")
    else:
        opened = _fallback(settings, create)
        if experiment:
            try:
                _check_home(settings, experiment, opened.store.address)
            except TipbenchError:
                opened.store.close()
                raise
    return opened


def remember(settings: Settings, experiment: str, address: str) -> None:
    """Notes where an experiment is kept, so that it is never silently continued elsewhere."""
    path = _note(settings, experiment)
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_suffix(".part")
    scratch.write_text(json.dumps({"experiment": experiment, "kept_at": address}))
    scratch.replace(path)


def own_database(settings: Settings) -> str:
    return f"{SCHEME}{settings.home / 'mlflow.db'}"


def _fallback(settings: Settings, create: bool) -> OpenedStore:
    client = MlflowClient(DEFAULT_SERVER, settings)
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
        settings.home.mkdir(parents=True, exist_ok=True)
    store = RunStore(EmbeddedMlflow(own_database(settings), create))
    return OpenedStore(store, f"{reason}: results go to tipbench's own database, {store.address}")


def _open(url: str, settings: Settings, create: bool) -> MlflowApi:
    kinds: dict[str, Callable[[], MlflowApi]] = {
        SCHEME: lambda: EmbeddedMlflow(url, create),
        "http://": lambda: MlflowClient(url, settings),
        "https://": lambda: MlflowClient(url, settings),
    }
    for start, make in kinds.items():
        if url.startswith(start) and len(url) > len(start):
            return make()
    raise InvalidInput(
        f"MLflow address {without_credentials(url)!r} can't be used; give http://…, https://… or sqlite:///FILE"
    )


def _check_home(settings: Settings, experiment: str, address: str) -> None:
    path = _note(settings, experiment)
    if not path.is_file():
        return
    try:
        kept_at = str(json.loads(path.read_text())["kept_at"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidInput(
            f"{path}, which says where experiment '{experiment}' is kept, can't be read; say where with --mlflow-url"
        ) from None
    if kept_at != address:
        raise InvalidInput(
            f"experiment '{experiment}' is kept at {kept_at}, and no address was given, so that {address} would be "
            f"used; make {kept_at} reachable, or say which you mean with --mlflow-url"
        )


def _note(settings: Settings, experiment: str) -> Path:
    return settings.home / "experiments" / f"{text_digest(experiment)[:32]}.json"
