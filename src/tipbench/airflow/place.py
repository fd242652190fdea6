"""Where workers keep results: an MLflow server, which all of them can reach."""

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from tipbench.bench.tracking.address import DEFAULT_SERVER, open_store
from tipbench.bench.workplace import Workplace
from tipbench.core.errors import InvalidInput
from tipbench.core.paths import journal_folder
from tipbench.core.settings import Settings
from tipbench.core.untrusted import without_credentials


@contextmanager
def shared_workplace(url: str | None, settings: Settings) -> Iterator[Workplace]:
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
    opened = open_store(named, settings)
    try:
        yield Workplace(opened.store, time.time, lambda: uuid.uuid4().hex[:16], journal_folder(settings.home))
    finally:
        opened.store.close()
