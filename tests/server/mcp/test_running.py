"""Starting collections and decisions, and following jobs."""

from typing import Any

import pytest

from tests.server.mcp.conftest import answer, refusal
from tests.server.views.conftest import EXPERIMENT
from tipbench.core.settings import Settings
from tipbench.server.jobs.catalog import open_runner
from tipbench.server.mcp.tools import Face
from tipbench.server.views.bench import new_id


def test_a_request_that_can_not_be_run_is_refused_with_every_problem(full: Face) -> None:
    message = refusal(full, "start_collection", models="scripted/a", promts="v1", n_tips=0)
    assert message.startswith("the request can't be run:")
    assert "promts: unknown key; did you mean prompts?" in message
    assert "n_tips" in message


def test_beside_a_server_jobs_are_read_and_not_started(full: Face) -> None:
    settings = Settings()
    server = open_runner("", settings.home, settings, lambda: 0.0, new_id)
    try:
        message = refusal(full, "start_collection", models="scripted/a", experiment="tip-bench-2")
        assert message.startswith("a 'tipbench serve' of this home starts and ends its jobs, so this connection can't")
        assert answer(full, "job") == {"says": "There was no job yet.", "jobs": []}
        assert "there is no job 'x'" in refusal(full, "job", id="x")
    finally:
        server.close()


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({}, "decide with look needs the decision's experiment"),
        ({"experiment": "no"}, "there is no decision 'no'; experiments lists them, and decide with start begins one"),
        ({"experiment": EXPERIMENT}, f"there is no decision '{EXPERIMENT}'"),
        ({"action": "continue", "experiment": "no", "models": "m"}, "leave 'models' out"),
        ({"action": "start", "models": "scripted/a", "prompts": "v1"}, "a decision is between rows"),
        ({"action": "ask"}, "action: should be 'look', 'start', 'continue' or 'stop' (given: 'ask')"),
    ],
)
def test_a_decision_that_can_not_be_is_refused_in_words(full: Face, asked: dict[str, Any], problem: str) -> None:
    assert problem in refusal(full, "decide", **asked)
