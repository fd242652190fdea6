"""The service serves simulated users."""

import json
import sys
from pathlib import Path

import httpx
import pytest

from tests.recommender.making import a_profile, a_request
from tipbench.core.errors import SimulationFailed
from tipbench.recommender.policies.catalog import SERVED
from tipbench.recommender.simulation import over_http
from tipbench.recommender.simulation.over_http import OverHttp, Service, is_served, service
from tipbench.recommender.simulation.rollout import ARMS, InProcess, arm, placebo_of


def test_what_the_service_knows() -> None:
    assert {name for name, one in ARMS.items() if is_served(one)} == {*SERVED, "egreedy/v2-flat"} - {
        "egreedy/v3",
        "ucb/v3",
    }
    placebo = placebo_of(arm("egreedy/v2"), arm("egreedy"))
    assert placebo
    assert not is_served(placebo)
    assert isinstance(Service("http://127.0.0.1:1", "key")(placebo), InProcess)


def test_the_profile_goes_along_with_score_and_reward() -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json={"chosen": "t3"})

    server = OverHttp(httpx.Client(base_url="http://test", transport=httpx.MockTransport(answer)), "egreedy/v2")
    for profile in (a_profile(), None):
        request = a_request(profile=profile)
        assert server.choose(request, 0) == 3
        server.learn(request, 0.5)
        score, reward = (json.loads(one.content) for one in sent[-2:])
        told = None if profile is None else profile.model_dump(mode="json")
        assert score["profile_features"] == told
        assert reward == {"user_id": "u1", "event_id": "e1", "reward": 0.5, "profile_features": told}
    assert [one.url.path for one in sent] == ["/score/egreedy/v2", "/reward/egreedy/v2"] * 2


def test_nobody_answers() -> None:
    with pytest.raises(SimulationFailed, match="does not answer"):
        Service("http://127.0.0.1:1", "key")(arm("egreedy")).choose(a_request(), 0)


def test_it_says_why_it_did_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no port is free >&2\nexit 2\n", encoding="utf-8")
    broken.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(SimulationFailed, match="did not start: no port is free"), service(tmp_path):
        pass


def test_it_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = tmp_path / "python"
    silent.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    silent.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(silent))
    monkeypatch.setattr(over_http, "_TIMEOUT_S", 0.3)
    with pytest.raises(SimulationFailed, match="did not start within"), service(tmp_path):
        pass
