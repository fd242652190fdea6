"""Suites that an admin registered by name, in `suites.json` in TIPBENCH_HOME: {"commits": "/srv/suites/commits"}."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tipbench.core.errors import InvalidInput
from tipbench.core.files import PRIVATE, atomic_write, make_private_folder, read_regular
from tipbench.core.locks import exclusive
from tipbench.core.paths import lock_path
from tipbench.core.settings import Settings
from tipbench.core.untrusted import json_text, shown

FILE = "suites.json"
_MAX_BYTES = 1_000_000


def registered_suites(settings: Settings) -> dict[str, Path]:
    """Return the folders of registered suites by name, whether or not they can be loaded. Raises InvalidInput."""
    path = settings.home / FILE
    try:
        data: Any = json.loads(read_regular(path, _MAX_BYTES))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path}, the list of registered suites, can't be read: {error}") from None
    if not isinstance(data, dict) or not all(isinstance(folder, str) and folder for folder in data.values()):
        raise InvalidInput(f"{path} must be names of suites with their folders (found: {shown(data)})")
    return {name: Path(folder) for name, folder in sorted(data.items())}


def add_registered(name: str, folder: Path, settings: Settings) -> bool:
    """Register a suite; return False if this folder is registered already.

    Raises InvalidInput if the name belongs to another folder.
    """
    with _changing(settings) as known:
        if name in known and known[name] != folder:
            raise InvalidInput(
                f"a suite '{name}' is registered already, in {known[name]}; give one of the two another name in its "
                f"suite.yaml, or 'tipbench suite unregister {name}' first"
            )
        is_new = name not in known
        known[name] = folder
    return is_new


def remove_registered(name: str, settings: Settings) -> Path:
    """Unregister a suite; return its folder, which stays as it is. Raises InvalidInput if there is no such suite."""
    with _changing(settings) as known:
        if name not in known:
            raise InvalidInput(f"no suite {shown(name)} is registered; there are {', '.join(known) or 'none'}")
        return known.pop(name)


@contextmanager
def _changing(settings: Settings) -> Iterator[dict[str, Path]]:
    """Yield the registered suites, to be changed; they are written afterwards, by one process at a time."""
    home = settings.home
    with exclusive(lock_path(home, "suites"), "another process registers a suite", wait=True, notify=lambda _: None):
        known = registered_suites(settings)
        before = dict(known)
        yield known
        if known != before:
            make_private_folder(home)
            data = {name: str(folder) for name, folder in sorted(known.items())}
            atomic_write(home / FILE, json_text(data), mode=PRIVATE, durable=True)
