"""Simulations over the API: asked for, watched and ended; what can't be is told."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from fastapi import FastAPI

from tests.server.ui.asgi_client import Client
from tests.server.views.made_recommender import GATE, MadeSimulations, a_simulation, an_outcome, made_room
from tipbench.core.errors import InvalidInput, NotFound
from tipbench.server.api.parts import Parts
from tipbench.server.api.simulations import router
from tipbench.server.jobs.progress import Progress

ALL = "/api/recommend/simulations"


def client_of(runner: MadeSimulations) -> Client:
    app = FastAPI()
    app.include_router(router(cast(Parts, SimpleNamespace(recommender=made_room(runner)))))
    return Client(app)


def test_one_is_started_and_watched(home: Path) -> None:
    runner = MadeSimulations()
    client = client_of(runner)
    answer = client.post(ALL, json={"kind": "gate", "candidate": "egreedy/v2", "seeds": 10})
    assert (answer.status_code, answer.headers["location"]) == (202, f"{ALL}/s0")
    started = answer.json()
    assert (started["state"], started["asked"]["incumbent"], started["passed"]) == ("queued", "egreedy", None)
    runner.found["s0"] = a_simulation("s0", "finished", GATE, exit_status=1, message="NOT PASSED")
    runner.told["s0"] = Progress(phase="done", cells=9, done=9, kept_as="0" * 16)
    runner.outcomes["s0"] = an_outcome()
    found = client.get(f"{ALL}/s0").json()
    assert (found["state"], found["passed"], found["gate"], found["progress"]["done"]) == (
        "finished",
        False,
        "0" * 16,
        9,
    )
    assert client.get(f"{ALL}/s0/outcome").json() == an_outcome()
    runner.logged = "said"
    assert client.get(f"{ALL}/s0/log").text == "said"
    assert [one["id"] for one in client.get(ALL).json()["simulations"]] == ["s0"]


def test_one_is_cancelled() -> None:
    runner = MadeSimulations({"s1": a_simulation()})
    answer = client_of(runner).post(f"{ALL}/s1/cancel")
    assert (answer.status_code, answer.json()["cancelling"]) == (202, True)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"kind": "run"},
        {"kind": "run", "policies": "egreedy"},
        {"kind": "gate", "candidate": "linucb", "world": "x.yaml"},
        {"kind": "gate", "candidate": "linucb", "seeds": "10"},
        {"kind": "gate", "candidate": "linucb", "seeds": 1e9},
    ],
)
def test_an_odd_request_is_refused(body: object) -> None:
    runner = MadeSimulations()
    assert client_of(runner).post(ALL, json=body).status_code == 422
    assert runner.found == {}


def test_what_can_not_be_is_told() -> None:
    client = client_of(MadeSimulations({"s1": a_simulation()}))
    with pytest.raises(InvalidInput, match="no policy 'nobody'"):  # which the server's errors make a 422 of
        client.post(ALL, json={"kind": "run", "policies": ["nobody"]})
    with pytest.raises(NotFound):
        client.get(f"{ALL}/s1/outcome")
    with pytest.raises(NotFound):
        client.get(f"{ALL}/none")
