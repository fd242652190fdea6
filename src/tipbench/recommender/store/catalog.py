"""The stores by name, as the settings choose among them. A store's code is imported only when it is used."""

from collections.abc import Callable, Mapping
from pathlib import Path

from tipbench.core.errors import InvalidInput, MissingExtra, StateRefused
from tipbench.core.paths import state_folder
from tipbench.core.settings import Settings
from tipbench.recommender.promotion.files import PROMOTIONS
from tipbench.recommender.store.interface import Movable


def _folder(settings: Settings) -> Path:
    return state_folder(settings.home)


def _files(settings: Settings, exclusive: bool) -> Movable:
    from tipbench.recommender.store.files import FileStore

    return FileStore(_folder(settings), exclusive=exclusive)


def _postgresql(settings: Settings, exclusive: bool) -> Movable:
    url = settings.get("TIPBENCH_POSTGRESQL_URL")
    if not url:
        raise InvalidInput(
            "states in PostgreSQL need a database; set TIPBENCH_POSTGRESQL_URL to postgresql://user:password@host/name"
        )
    try:
        from tipbench.recommender.store.postgresql import PostgresStore
    except ImportError as error:
        raise MissingExtra(f"states in PostgreSQL need more: pip install 'tipbench[postgresql]' ({error})") from error
    return PostgresStore(url, exclusive)


STORES: Mapping[str, Callable[[Settings, bool], Movable]] = {"files": _files, "postgresql": _postgresql}


def open_store(settings: Settings) -> Movable:
    """The one that the settings name, to serve from."""
    return _opened(settings.get("TIPBENCH_STATE"), settings, exclusive=False)


def check_not_left_behind(store: Movable, settings: Settings) -> None:
    """Refuses an empty store beside files that hold anything: everybody would begin anew, unnoticed, and with the first
    policy."""
    folder = _folder(settings)
    if store.name == "files" or (folder / "MOVED").exists() or next(iter(store.keys()), None) is not None:
        return
    history = folder.with_name(PROMOTIONS)
    if next(folder.glob("*.json"), None) is not None:
        left = f"the states of users are in {folder}"
    elif history.exists() and not store.promotions.history():
        left = f"what was promoted is in {history}"
    else:
        return
    raise StateRefused(
        f"{left}, and there is nothing of it in {store.address}; 'tipbench recommend move files {store.name}' moves "
        "it, or move that away to begin anew"
    )


def open_alone(name: str, settings: Settings) -> Movable:
    """To move what is in it: refused while anybody uses it."""
    return _opened(name, settings, exclusive=True)


def _opened(name: str, settings: Settings, exclusive: bool) -> Movable:
    if name not in STORES:
        raise InvalidInput(f"there is no store {name!r} for states; set TIPBENCH_STATE to {' or '.join(STORES)}")
    return STORES[name](settings, exclusive)
