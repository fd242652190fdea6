"""Events of a job go on when the place where it runs comes back."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.server.ui.made_panel import MadeRunner, a_job
from tipbench.core.errors import RunnerUnreachable
from tipbench.server.api import jobs
from tipbench.server.api.parts import Parts
from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.progress import Progress


class _Returning(MadeRunner):
    """Runs, is away, and has ended when it is back."""

    def __init__(self) -> None:
        super().__init__(told={"j1": Progress()})
        self.moments: Iterator[Job | None] = iter((a_job(), None, None, a_job(state="finished")))

    def job(self, job_id: str) -> Job:
        found = next(self.moments)
        if found is None:
            raise RunnerUnreachable("away")
        return found


class _Listening:
    async def is_disconnected(self) -> bool:
        return False


def test_events_outlast_a_runner_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_POLL_S", 0.01)

    async def told() -> list[str]:
        parts = Parts.__new__(Parts)
        object.__setattr__(parts, "runner", _Returning())
        return [event async for event in jobs._events(parts, "j1", _Listening())]  # type: ignore[arg-type]

    assert [event.partition("\n")[0] for event in asyncio.run(told())] == ["event: progress", "event: end"]
