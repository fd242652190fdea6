"""Every test gets a home of its own and sees no setting of whoever runs it.

Tests outside `tests/integration` need no server, no weights, no browser, and kill nothing: they are `make test-fast`.
"""

import gc
import itertools
import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.user_cache import cache_folder
from tipbench.core import config_files
from tipbench.core.settings import TABLE

# A model's threads wait for each other at full speed: where another test has one of two cores, two threads take twice
# as much of the processor as one, and longer. It is read when a model's library is loaded, wherever a test does that.
os.environ["OMP_THREAD_LIMIT"] = "1"
os.environ.pop("COLUMNS", None)  # workers of a test run may have one, and tables would be cut to it
settings.register_profile(  # a busy machine is no bug
    "tests", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("tests")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # started in the background; children would ignore it as well
    signal.signal(signal.SIGINT, signal.default_int_handler)
INTEGRATION = Path(__file__).parent / "integration"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--screenshots", metavar="FOLDER", help="Take the pictures of the docs while testing pages.")


def pytest_collection_finish() -> None:
    """What was imported stays: looking through it again and again for garbage takes a tenth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say in one line what did not run, and why."""
    left_out = Counter(_reason(report) for report in terminalreporter.stats.get("skipped", []))
    left_out.update(_reason(report) for report in terminalreporter.stats.get("xfailed", []))
    told = [f"{count} × {reason}" for reason, count in left_out.items()]
    if _is_ignored(config, INTEGRATION):
        told.append("tests/integration (servers, weights, browser, kills): 'make test' runs them")
    terminalreporter.write_line(
        f"Not run: {'; '.join(told)}" if told else "Not run: nothing; all that was selected ran."
    )


def _reason(report: pytest.TestReport) -> str:
    told = report.longrepr[2] if isinstance(report.longrepr, tuple) else getattr(report, "wasxfail", "no reason given")
    return str(told).removeprefix("Skipped: ")


def _is_ignored(config: pytest.Config, folder: Path) -> bool:
    return any(folder == Path(config.invocation_params.dir, path) for path in config.getoption("ignore") or ())


@pytest.fixture(scope="session")
def empty_databases() -> Path:
    """Where the empty database is cached that new ones are copied from; MLflow takes seconds to make one."""
    folder = cache_folder("test-databases")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> "itertools.count[int]":
    """Numbers for homes; pytest's own way to find one reads the folder of all of them."""
    return itertools.count()


@pytest.fixture(autouse=True)
def home(
    empty_databases: Path,
    homes: "itertools.count[int]",
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """TIPBENCH_HOME in a folder that holds nothing but a cache, and no file `tipbench.toml`."""
    for setting in TABLE:
        monkeypatch.delenv(setting.name, raising=False)
    folder = tmp_path_factory.getbasetemp() / "homes" / str(next(homes))
    folder.mkdir(mode=0o700, parents=True)
    monkeypatch.setenv("TIPBENCH_HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{folder}-config")
    monkeypatch.setattr(config_files, "SYSTEM_FILE", f"{folder}-system/tipbench.toml")
    (folder / "cache").symlink_to(empty_databases)
    return folder
