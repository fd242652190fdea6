"""The runner is chosen by name; what is no runner is refused in one sentence."""

from pathlib import Path

import pytest

import tipbench
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings
from tipbench.server.jobs.catalog import _opener, open_runner
from tipbench.server.jobs.interface import Runner


def opened(home: Path, name: str = "") -> Runner:
    return open_runner("sqlite:///m.db", home, Settings({"TIPBENCH_RUNNER": name}), lambda: 0.0, lambda: "id")


@pytest.mark.parametrize("name", ["", "subprocess"])
def test_runs_happen_on_this_machine_unless_somebody_says_otherwise(home: Path, name: str) -> None:
    runner = opened(home, name)
    assert runner.is_local
    assert runner.jobs() == []
    runner.close()


@pytest.mark.parametrize(
    "name", ["nobody", "interface", "catalog", "job_store", "Subprocess", "a.b", "..settings", "os", "a b", "x\x1b[2J"]
)
def test_what_is_no_runner_is_refused_by_name(home: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="TIPBENCH_RUNNER: there is no runner") as caught:
        opened(home, name)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_part_brings_its_own() -> None:
    """So that one that is taken out leaves nothing behind, and one that is put in is found."""
    parts = [path.parent.parent.name for path in Path(tipbench.__path__[0]).glob("*/remote/__init__.py")]
    assert parts == ["airflow"]
    assert all(callable(_opener(name)) for name in parts)
