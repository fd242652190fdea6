"""What belongs to an installation and is not in its home, so that a backup of the home does not have it."""

import json
from pathlib import Path

from tipbench.bench.suites.registered import registered_suites
from tipbench.bench.tracking.address import own_database_url
from tipbench.core.errors import InvalidInput
from tipbench.core.paths import state_folder, weights_folder
from tipbench.core.settings import Settings
from tipbench.core.untrusted import without_credentials


def stored_elsewhere(settings: Settings) -> list[str]:
    """Return what a backup of this home does not have, and how to get it back."""
    home = settings.home
    found = [f"results at {store}; back that up right after this" for store in _other_stores(settings)]
    if settings.get("TIPBENCH_STATE") != "files" or (state_folder(home) / "MOVED").exists():
        found.append("users' states in PostgreSQL; back that up right after this")
    found += [f"the suite in {folder}" for folder in _suites(settings) if not folder.is_relative_to(home)]
    weights = sorted(path.stem for path in weights_folder(home).glob("*.gguf"))
    if weights:
        found.append(f"weights ({', '.join(weights)}); 'tipbench pull' installs what it knows")
    return found


def _other_stores(settings: Settings) -> list[str]:
    """Return the addresses of stores other than the home's own database that experiments are in."""
    named = {settings.get("MLFLOW_TRACKING_URI")}
    for path in settings.home.glob("experiments/*.json"):
        try:
            named.add(str(json.loads(path.read_text(encoding="utf-8"))["kept_at"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return sorted(without_credentials(address) for address in named - {"", own_database_url(settings)})


def _suites(settings: Settings) -> list[Path]:
    try:
        return list(registered_suites(settings).values())
    except InvalidInput:  # whoever uses them is told
        return []
