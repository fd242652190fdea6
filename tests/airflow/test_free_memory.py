"""No model is loaded beside another one, whoever loaded that."""

import pytest

from tipbench.airflow.host_assignment import wait_for_free_memory
from tipbench.bench.engines.ollama import OllamaEngine
from tipbench.bench.records import ResidentModel
from tipbench.core.errors import EngineError


class Host(OllamaEngine):
    """An Ollama whose memory holds these models, one list a look, the last one for ever; and a clock beside it."""

    def __init__(self, *snapshots: list[str]) -> None:
        super().__init__("http://gpu1:11434", 1)
        self.now = 0.0
        self.snapshots = list(snapshots)
        self.said: list[str] = []
        self.unloaded: list[str] = []

    def unload(self, model: str) -> None:
        self.unloaded.append(model)
        self.snapshots = [[]]

    def resident(self) -> list[ResidentModel]:
        held = self.snapshots.pop(0) if len(self.snapshots) > 1 else self.snapshots[0]
        return [ResidentModel(name) for name in held]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def wait(self, model: str, *ours: str) -> float:
        wait_for_free_memory(self, model, self.said.append, ours, lambda: self.now, self.sleep)
        self.close()
        return self.now


def test_an_empty_host_is_looked_at_for_a_moment() -> None:
    assert Host([]).wait("ant:1b") == pytest.approx(1.0, abs=0.2)


def test_ones_own_model_under_any_name_is_in_nobodys_way() -> None:
    host = Host(["ant:latest"])
    assert host.wait("ollama/library/Ant") < 2
    assert host.said == []


def test_a_model_that_comes_and_goes_is_waited_for() -> None:
    """As when a worker that was written off works on until its next heartbeat."""
    host = Host(["bee:1b"], [], ["bee:1b"], [], [], [], ["bee:1b"], [])
    assert host.wait("ant:1b") > 1.5
    assert host.said == ["bee:1b is in memory at http://gpu1:11434; waiting until it is unloaded …"]


def test_what_a_lost_worker_left_of_this_run_is_unloaded() -> None:
    host = Host(["bee:latest"])
    assert host.wait("ant:1b", "ant:1b", "Bee") == pytest.approx(21, abs=1)
    assert host.unloaded == ["bee:latest"]
    assert "by a worker that is gone" in host.said[-1]


def test_a_model_that_stays_is_told_with_what_to_do() -> None:
    host = Host(["bee:1b"])
    with pytest.raises(EngineError, match=r"bee:1b is still in memory at http://gpu1:11434.*'ollama stop bee:1b'"):
        host.wait("ant:1b", "cat:1b")
    assert host.unloaded == []
    assert host.now == pytest.approx(60, abs=1)
