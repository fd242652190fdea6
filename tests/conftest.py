"""Every test gets a home of its own and sees no setting of whoever runs it."""

from pathlib import Path

import pytest

from tipbench.engines.weights import KNOWN, pull, weights_path
from tipbench.settings import TABLE, Settings


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """TIPBENCH_HOME in an empty folder."""
    for setting in TABLE:
        monkeypatch.delenv(setting.name, raising=False)
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("TIPBENCH_HOME", str(folder))
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
