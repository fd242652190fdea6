"""Every test gets a home of its own and sees no setting of whoever runs it."""

from pathlib import Path

import pytest

from tipbench.engines.weights import KNOWN, pull, weights_path
from tipbench.settings import TABLE, Settings


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
