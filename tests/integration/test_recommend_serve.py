"""The real command: statuses, restarts, workers that die, and a parent that does."""

import os
import signal
import time
from pathlib import Path

import httpx
import psutil
import pytest

from tests.integration.recommending import Recommending, recommending
from tests.integration.serving import until
from tests.recommender.service.asking import request, reward
from tipbench.core.settings import Settings


def test_every_endpoint_and_its_statuses() -> None:
    with recommending() as served, served.client() as client:
        assert httpx.get(f"{served.url}/health", trust_env=False).json()["status"] == "ok"
        assert httpx.get(f"{served.url}/shadows", trust_env=False).status_code == 401
        for path in ("", "/egreedy/v2", "/linucb"):
            assert client.post(f"/score{path}", json=request("e1")).status_code == 200
            assert client.post(f"/score{path}", json=request("e1")).json()["repeated"] is True
            assert client.post(f"/score{path}", json=request("e1", context={"hour": 1})).status_code == 409
            assert client.post(f"/reward{path}", json=reward("e1")).json()["status"] == "applied"
            assert client.post(f"/reward{path}", json=reward("e1")).json()["status"] == "duplicate"
            assert client.post(f"/reward{path}", json=reward("e1", -1)).status_code == 409
            assert client.post(f"/reward{path}", json=reward("e2")).status_code == 404
        for policy in ("egreedy", "egreedy/v2", "linucb"):
            known = client.get(f"/stats/{policy}/u1").json()
            assert (known["n"], known["duplicates"], known["policy"]) == (1, 1, policy)
        assert client.post("/score/thompson", json=request("e3")).status_code == 404
        assert client.post("/score", content=b'{"user_id": NaN}').status_code == 422
        assert client.post("/reset", json={"user_id": "u1"}).json()["cleared"] == ["egreedy", "egreedy/v2", "linucb"]
        assert client.get("/stats/egreedy/u1").json()["n"] == 0


def test_a_reward_that_comes_too_late_is_taken_note_of() -> None:
    with recommending(TIPBENCH_REWARD_WINDOW="0.05") as served, served.client() as client:
        client.post("/score", json=request("e1")).raise_for_status()
        time.sleep(0.1)
        late = client.post("/reward", json=reward("e1"))
        assert (late.status_code, late.json()) == (202, {"status": "late", "n": 0, "policy": "egreedy"})


def test_states_outlive_a_restart() -> None:
    with recommending() as served, served.client() as client:
        first = client.post("/score", json=request("e1")).json()
    with recommending("--workers", "2") as served, served.client() as client:
        again = client.post("/score", json=request("e1")).json()
        assert again == {**first, "repeated": True}
        assert client.post("/reward", json=reward("e1")).json()["n"] == 1


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_that_is_killed_is_replaced_and_all_end_together(by: signal.Signals) -> None:
    with recommending("--workers", "2", by=by) as served:
        workers: list[psutil.Process] = until(lambda: len(found := served.workers()) == 2 and found)
        os.kill(workers[0].pid, signal.SIGKILL)
        replaced = until(lambda: len(now := served.workers()) == 2 and workers[0] not in now and now)
        with served.client() as client:
            assert client.get("/shadows").status_code == 200
        for worker in replaced if by == signal.SIGINT else ():  # a terminal tells all of them
            worker.send_signal(by)
    assert not [one for one in (*workers, *replaced) if one.is_running()]


def test_a_killed_parent_leaves_no_worker_behind() -> None:
    served = Recommending("--workers", "2")
    with served.client() as client:
        client.get("/health").raise_for_status()
    workers = served.workers()
    served.kill()
    assert len(workers) == 2
    until(lambda: not [one for one in workers if one.is_running() and one.status() != psutil.STATUS_ZOMBIE])
    with pytest.raises(httpx.ConnectError), served.client() as client:
        client.get("/health")


def test_workers_share_states_and_write_decisions_of_their_own() -> None:
    with recommending("--workers", "2") as served:
        until(lambda: len(served.workers()) == 2)
        decisions = Settings().home / "recommender" / "decisions"

        def both_have_answered() -> bool:
            return len({path.name.split("-")[1] for path in decisions.glob("*.jsonl")}) == 2

        number = 0
        while not both_have_answered():
            number += 1
            with served.client() as client:  # a connection stays with the worker that took it
                client.post("/score", json=request(f"e{number}")).raise_for_status()
                assert client.post("/reward", json=reward(f"e{number}")).json()["n"] == number
            assert number < 200
        with served.client() as client:
            assert client.get("/stats/egreedy/u1").json()["n"] == number


def test_nothing_of_the_key_is_kept_or_logged() -> None:
    served = Recommending(TIPBENCH_SERVING_KEY="")
    key = next(line.split()[-1] for line in served.out if "shown this once" in line)
    with served.client(key) as client:
        assert client.get("/shadows").status_code == 200
        assert client.get("/shadows", headers={"Authorization": f"Bearer {key}x"}).status_code == 401
    assert key not in served.end()
    folder = Settings().home / "recommender"
    assert key.encode() not in b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert Path(folder / "key").stat().st_mode & 0o777 == 0o600


def test_a_new_key_takes_the_place_of_the_old_one() -> None:
    def key_of(out: list[str]) -> list[str]:
        return [line.split()[-1] for line in out if line.startswith("Key, shown this once")]

    with recommending(TIPBENCH_SERVING_KEY="") as first:
        (old,) = key_of(first.out)
        with recommending("--new-key", TIPBENCH_SERVING_KEY="") as second, first.client(old) as client:
            (new,) = key_of(second.out)
            assert client.get("/shadows").status_code == 401
            assert client.get("/shadows", headers={"Authorization": f"Bearer {new}"}).status_code == 200
