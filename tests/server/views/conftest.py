"""A store with a collected experiment, and the parts of the server over it."""

import shutil
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tipbench.core.settings import Settings
from tipbench.server.views.batches import Drafts
from tipbench.server.views.boards import Boards
from tipbench.server.views.judging import JudgingDesk
from tipbench.server.views.snapshots import SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreProvider

EXPERIMENT = "tip-bench-first"


@pytest.fixture(scope="session")
def collected(tmp_path_factory: pytest.TempPathFactory, empty_databases: Path) -> Path:
    """A database with one experiment of 16 cells, not judged; tests take copies."""
    folder = tmp_path_factory.mktemp("collected")
    (folder / "home").mkdir()
    (folder / "home" / "cache").symlink_to(empty_databases)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIPBENCH_HOME", str(folder / "home"))
        done = tipbench(
            *("collect", "--models", "scripted/a,scripted/b", "--prompts", "v1", "--n-tips", "2"),
            *("--experiment", EXPERIMENT, "--mlflow-url", f"sqlite:///{folder / 'm.db'}"),
        )
        assert done.status == 0, done.err
    with closing(sqlite3.connect(folder / "m.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder / "m.db"


@pytest.fixture
def address(collected: Path, tmp_path: Path) -> str:
    shutil.copy(collected, tmp_path / "m.db")
    return f"sqlite:///{tmp_path / 'm.db'}"


@pytest.fixture
def stores(address: str) -> Iterator[StoreProvider]:
    stores = StoreProvider(address, Settings(), time.time, lambda: uuid.uuid4().hex[:16])
    yield stores
    stores.close()


@pytest.fixture
def snapshots(stores: StoreProvider) -> SnapshotMemoryCache:
    return SnapshotMemoryCache(stores)


@pytest.fixture
def boards(stores: StoreProvider, snapshots: SnapshotMemoryCache) -> Boards:
    return Boards(stores, snapshots)


@pytest.fixture
def drafts(tmp_path: Path) -> Iterator[Drafts]:
    drafts = Drafts(tmp_path / "server" / "drafts.db")
    yield drafts
    drafts.close()


@pytest.fixture
def desk(stores: StoreProvider, snapshots: SnapshotMemoryCache, drafts: Drafts) -> JudgingDesk:
    return JudgingDesk(stores, snapshots, drafts)
