"""What stands in MLflow after a measurement."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tipbench.bench.tracking.address import open_store
from tipbench.bench.tracking.store import RunStore
from tipbench.core.settings import Settings


def stored_cells(database: Path) -> int:
    """Counted without tipbench."""
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute(
            "SELECT count(*) FROM runs JOIN tags USING (run_uuid) "
            "WHERE status = 'FINISHED' AND key = 'tipbench.kind' AND tags.value = 'cell'"
        )
        return int(found.fetchone()[0])


@contextmanager
def opened(url: str) -> Iterator[RunStore]:
    store = open_store(url, Settings(), create=True).store
    try:
        yield store
    finally:
        store.close()
