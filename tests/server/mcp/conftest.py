"""The views of a collected experiment, and both faces over them."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.filling import filled
from tests.server.views.conftest import address, collected
from tipbench.core.settings import Settings
from tipbench.server.jobs.on_demand import open_runner_on_demand
from tipbench.server.mcp.server import full_face, judging_face
from tipbench.server.mcp.tools import Face, SeenResults
from tipbench.server.views.bench import BenchViews, new_id, open_bench_views
from tipbench.server.views.judging import JudgingDesk

__all__ = ["address", "collected"]


@pytest.fixture
def views(address: str) -> Iterator[BenchViews]:
    settings = Settings()
    runner = open_runner_on_demand(address, settings.home, settings, time.time, new_id)
    views = open_bench_views(address, settings, runner, time.time, new_id)
    yield views
    views.close()


@pytest.fixture
def judge(views: BenchViews) -> Face:
    return judging_face(views.desk, "ann")


@pytest.fixture
def full(views: BenchViews) -> Face:
    return full_face(views, "person", SeenResults())


def answer(face: Face, tool: str, **arguments: Any) -> dict[str, Any]:
    outcome = face.call(tool, arguments)
    assert not outcome.failed, outcome.answer
    return outcome.answer


def refusal(face: Face, tool: str, **arguments: Any) -> str:
    outcome = face.call(tool, arguments)
    assert outcome.failed, outcome.answer
    return str(outcome.answer["error"])


def faithful(desk: JudgingDesk, batch: str, judge: str = "ann") -> dict[str, dict[str, int]]:
    """Scores for every item of the batch, as a faithful judge gives them."""
    return {item["slot"]: item["scores"] for item in filled(desk.file(batch, judge))["items"]}
