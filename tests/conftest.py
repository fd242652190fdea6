"""Every test gets a home of its own and sees no setting of whoever runs it."""

import os
from pathlib import Path

import pytest

from tipbench.engines.weights import KNOWN, pull, weights_path
from tipbench.settings import TABLE, Settings

# A model's threads wait for each other at full speed: where another test has one of two cores, two threads take twice
# as much of the processor as one, and longer. It is read when a model's library is loaded, wherever a test does that.
os.environ["OMP_THREAD_LIMIT"] = "1"
LONGEST = (
    "test_airflow.py",
    "test_wheel.py",
    "test_quick_start.py",
    "integration/test_panel.py",
    "judges/test_model.py",
    "test_nothing_lost.py",
    "test_recommend_at_once.py",
    "store/test_stores.py",
    "test_whole_story.py",
    "test_simulation_jobs.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", metavar="FOLDER", help="Take the pictures of the docs while testing pages.")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: two files of tests go at a time, and nobody shall wait for one of them in the end."""

    def place(item: pytest.Item) -> int:
        file = item.nodeid.partition("::")[0]
        return next((number for number, name in enumerate(LONGEST) if file.endswith(name)), len(LONGEST))

    items.sort(key=place)


@pytest.fixture(scope="session")
def empty_databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the empty database is kept that new ones are copied from: making it takes seconds, so it is made once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def home(empty_databases: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """TIPBENCH_HOME in a folder that holds nothing but a cache."""
    for setting in TABLE:
        monkeypatch.delenv(setting.name, raising=False)
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("TIPBENCH_HOME", str(folder))
    (folder / "cache").symlink_to(empty_databases)
    return folder


@pytest.fixture(scope="session")
def weights_folder() -> Path:
    """The folder that `make setup` installs the embedded model's weights into; installed here if need be."""
    folder = Settings().home / "weights"
    pull(folder, KNOWN["smollm2:135m"])
    return folder


@pytest.fixture
def weights(home: Path, weights_folder: Path) -> Path:
    """The embedded model's weights, in this test's home."""
    target = weights_path(home / "weights", "smollm2:135m")
    target.parent.mkdir()
    target.symlink_to(weights_path(weights_folder, "smollm2:135m"))
    return target
