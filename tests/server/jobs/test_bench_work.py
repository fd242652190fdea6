"""After a collection no model stays in memory, or its message says so."""

from pathlib import Path
from typing import Any

from tipbench.core.settings import Settings
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.job_store import StoredJob
from tipbench.server.jobs.progress import Progress
from tipbench.server.jobs.subprocess import BenchJobKind


def stored(**config: Any) -> StoredJob:
    return StoredJob(Job("j1", "running", {"experiment": "e", **config}, 1), False, False, (), None, None, False)


def test_one_that_had_loaded_nothing_leaves_nothing(home: Path) -> None:
    work, broken = BenchJobKind(home, Settings()), stored(n_tips=0)
    assert [work.clean_up(broken, progress) for progress in (None, Progress(), Progress(phase="waiting"))] == [""] * 3


def test_where_nobody_can_look_its_message_says_so(home: Path) -> None:
    left = BenchJobKind(home, Settings()).clean_up(stored(n_tips=0), Progress(phase="collect"))
    assert left.startswith("; a model that it used may still be loaded: ")
    assert "n_tips" in left


def test_it_is_named_by_what_it_fills(home: Path) -> None:
    assert BenchJobKind(home, Settings()).name(stored().job) == "job j1 (e)"
