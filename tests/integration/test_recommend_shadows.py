"""Shadows beside the real service: signals arrive from every worker, and one that hangs is nobody's concern."""

import statistics
import time
from pathlib import Path
from typing import Any

import httpx

from tests.integration.recommending import recommending
from tests.integration.serving import until
from tests.recommender.service.asking import request, reward
from tipbench.core.settings import Settings
from tipbench.recommender.log.segmented_log import entries

NAME = "egreedy-v2-shadow"


def folder() -> Path:
    return Settings().home / "recommender"


def signals(name: str) -> list[dict[str, Any]]:
    return [signal for signal in entries(folder() / "signals") if signal["signal"] == name]


def test_signals_of_all_workers_arrive_and_no_state_is_kept() -> None:
    answers = {}
    with recommending("--workers", "2", "--shadow", NAME) as served:
        for number in range(30):
            with served.client() as client:  # a connection of its own, so that both workers get some
                answers[f"e{number}"] = client.post("/score", json=request(f"e{number}")).raise_for_status().json()
                client.post("/reward", json=reward(f"e{number}")).raise_for_status()
    last = signals(f"shadow:{NAME}:counts")
    assert len(last) == 2
    assert sum(one["counts"]["offered"] for one in last) == 30
    assert [one["counts"]["in_flight"] for one in last] == [0, 0]
    published = signals(f"shadow:{NAME}")
    assert len(published) == sum(one["counts"]["published"] for one in last) > 0
    for signal in published:
        answer = answers[signal["event_id"]]
        assert signal["served"] == {key: answer[key] for key in ("policy", "chosen", "propensity")}
        assert signal["propensities"] == [0.5, 0.5]
        assert len(signal["features"]["rows"][0]) == 12
    assert [path.name for path in (folder() / "state").glob("*.json")] == ["u1_egreedy.json"]


def test_one_that_hangs_costs_the_answers_nothing_and_does_not_keep_the_service_from_ending(tmp_path: Path) -> None:
    with (
        recommending(TIPBENCH_HOME=str(tmp_path)) as without,
        without.client() as client_without,
        recommending(program="tests.integration.hanging_shadow", TIPBENCH_SHADOWS=NAME) as beside,
        beside.client() as client_beside,
    ):
        took: dict[str, list[float]] = {"without": [], "beside": []}
        for number in range(200):
            took["without"].append(answering(client_without, f"e{number}"))
            took["beside"].append(answering(client_beside, f"e{number}"))
        (shadow,) = until(
            lambda: (told := client_beside.get("/shadows").json()["shadows"])[0]["counts"]["late"] and told
        )
        begun = time.monotonic()
    assert time.monotonic() - begun < 20
    assert (shadow["name"], shadow["on"], shadow["counts"]["published"]) == (NAME, True, 0)
    quick = {name: statistics.quantiles(seconds, n=10)[0] for name, seconds in took.items()}  # others use the machine
    assert quick["beside"] < 1.5 * quick["without"]
    (last,) = signals(f"shadow:{NAME}:counts")
    assert last["counts"]["offered"] == 200 == sum(last["counts"]["dropped"].values())


def answering(client: httpx.Client, event: str) -> float:
    begun = time.perf_counter()
    client.post("/score", json=request(event)).raise_for_status()
    return time.perf_counter() - begun
