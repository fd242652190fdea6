"""The service serves simulated users."""

import sys
from pathlib import Path

import pytest

from tests.bandit.making import a_request
from tipbench.bandit.simulation import over_http
from tipbench.bandit.simulation.arms import ARMS, arm, placebo_of
from tipbench.bandit.simulation.over_http import Service, is_served, service
from tipbench.bandit.simulation.play import InProcess
from tipbench.errors import SimulationFailed


def test_what_the_service_knows() -> None:
    assert {name for name, one in ARMS.items() if is_served(one)} == {
        "egreedy",
        "egreedy/v2",
        "egreedy/v2-flat",
        "linucb",
    }
    placebo = placebo_of(arm("egreedy/v2"), arm("egreedy"))
    assert placebo
    assert not is_served(placebo)
    assert isinstance(Service("http://127.0.0.1:1", "key")(placebo), InProcess)


def test_nobody_answers() -> None:
    with pytest.raises(SimulationFailed, match="does not answer"):
        Service("http://127.0.0.1:1", "key")(arm("egreedy")).choose(a_request())


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
    monkeypatch.setattr(over_http, "_PATIENCE_S", 0.3)
    with pytest.raises(SimulationFailed, match="did not start within"), service(tmp_path):
        pass
