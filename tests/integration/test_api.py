"""The API as a program uses it: a whole run, and what is refused."""

import json
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.filling import filled
from tests.integration.serving import Served, ended_job, serving, start_run
from tipbench.core.settings import Settings

RUN = {"models": "scripted/a,scripted/b", "prompts": "v1", "n_scenarios": 3, "n_tips": 2}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, empty_databases: Path) -> Iterator[Served]:
    """One server for the tests of this file, each with an experiment of its own."""
    home = tmp_path_factory.mktemp("home")
    (home / "cache").symlink_to(empty_databases)
    with serving("--mlflow-url", f"sqlite:///{home / 'mlflow.db'}", TIPBENCH_HOME=str(home)) as served:
        served.home = home
        yield served


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as client:
        yield client


def test_the_whole_path_over_the_api(client: httpx.Client) -> None:
    experiment = "tip-bench-whole"
    started = start_run(client, **RUN, experiment=experiment)
    job = ended_job(client, started["id"])
    assert (job["state"], job["exit_status"]) == ("finished", 0), job["log"]
    assert job["progress"]["done"] == 6
    assert job["progress"]["waiting_items"] > 0
    listed = {one["name"]: one for one in client.get("/api/bench/experiments").json()["experiments"]}
    counts = {key: listed[experiment][key] for key in ("cells", "judged", "pending", "failed")}
    assert counts == {"cells": 6, "judged": 0, "pending": 6, "failed": 0}
    batch = client.post("/api/judging/next", json={"experiment": experiment}).json()["batch"]["batch"]
    file = client.get(f"/api/judging/batches/{batch}").json()
    for item in filled(file)["items"]:
        path = f"/api/judging/batches/{batch}/items/{item['slot']}"
        assert client.patch(path, json={"scores": item["scores"], "note": "read"}).status_code == 200
    applied = client.post(f"/api/judging/batches/{batch}/scores").raise_for_status().json()
    assert applied["counted"]
    board = client.get(f"/api/bench/leaderboard/{experiment}")
    assert board.json()["cells"]["judged"] == 6
    assert client.get(board.request.url, headers={"If-None-Match": board.headers["ETag"]}).status_code == 304
    runs = client.get(f"/api/bench/runs/{experiment}", params={"limit": 2, "state": "judged"}).json()
    assert (len(runs["runs"]), runs["total"]) == (2, 6)
    run = client.get(f"/api/bench/run/{runs['runs'][0]['run_id']}", params={"experiment": experiment}).json()
    assert {one["judge"] for one in run["scores"]} == {"person"}
    assert run["scores"][0]["note"] == "read"
    assert len(run["candidate_texts"]) == 2


def test_a_file_that_was_filled_in_elsewhere(client: httpx.Client) -> None:
    experiment = "tip-bench-file"
    ended_job(client, start_run(client, **RUN, experiment=experiment)["id"])
    assert client.post("/api/judging/next", json={"experiment": experiment, "items": 4}).status_code == 422
    given = client.post("/api/judging/next", json={"experiment": experiment, "items": 20}).json()["batch"]
    assert (given["items"], given["exported"]) == (20, False), "the job's own file is nobody's"
    batch = given["batch"]
    file = client.get(f"/api/judging/batches/{batch}").json()
    refused = client.post(f"/api/judging/batches/{batch}/scores", json=file)
    assert refused.status_code == 422
    assert "not filled in" in json.dumps(refused.json())
    endless = client.post(f"/api/judging/batches/{batch}/scores", content=b"[" + b"{}," * 1_000_000)
    assert endless.status_code == 413, "what is no answer to this batch is not even read"
    written_otherwise = json.dumps(filled(file), indent=8, ensure_ascii=True)
    assert client.post(f"/api/judging/batches/{batch}/scores?partial=true", content=b"{").status_code == 422
    applied = client.post(f"/api/judging/batches/{batch}/scores", content=written_otherwise)
    assert applied.json()["counted"], applied.text


def test_events_tell_how_a_run_goes(client: httpx.Client, tmp_path: Path) -> None:
    slow = tmp_path / "slow-1b.yaml"
    slow.write_text("parameters: 1000000\nlatency_s: 0.3\n")
    job = start_run(client, models=f"scripted/{slow}", prompts="v1", n_scenarios=4, experiment="tip-bench-events")
    events: list[tuple[str, dict[str, Any]]] = []
    with client.stream("GET", f"/api/jobs/{job['id']}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        name = ""
        for line in answer.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                events.append((name, json.loads(line.removeprefix("data: "))))
    assert events[-1][0] == "end"
    assert events[-1][1]["state"] == "finished"
    done = [told["progress"]["done"] for _, told in events]
    assert done == sorted(done)
    assert len(set(done)) > 2, "it was watched while it went"


def test_a_run_is_cancelled(client: httpx.Client, tmp_path: Path) -> None:
    slow = tmp_path / "slower-1b.yaml"
    slow.write_text("parameters: 1000000\nlatency_s: 1\n")
    job = start_run(client, models=f"scripted/{slow}", prompts="v1", n_tips=1, repeats=50, experiment="tip-bench-long")
    assert client.post(f"/api/jobs/{job['id']}/cancel").status_code == 202
    assert ended_job(client, job["id"])["state"] == "cancelled"


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({"modles": "x"}, ["modles: unknown key; did you mean models?"]),
        ({"n_tips": 0, "temperature": "hot"}, ["n_tips", "temperature"]),
        ({"models": "scripted/a", "prompts": "v7,v8"}, ["'v7'", "'v8'"]),
        ({"models": "embedded/none:1b,embedded/nil:1b"}, ["embedded/none:1b", "embedded/nil:1b"]),
        ({"models": "scripted/a", "mlflow_url": "http://u:s3cret@h"}, ["mlflow_url"]),
    ],
)
def test_a_run_that_can_not_be_is_refused_with_every_problem(
    client: httpx.Client, config: dict[str, Any], told: list[str]
) -> None:
    before = client.get("/api/jobs").json()
    answer = client.post("/api/bench/run", json=config)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert set(error) == {"code", "message", "problems"}
    for part in told:
        assert part in "\n".join(error["problems"])
    assert "s3cret" not in answer.text
    assert client.get("/api/jobs").json() == before


def test_a_model_that_is_too_large_is_refused_before_any_job(client: httpx.Client, tmp_path: Path) -> None:
    (tmp_path / "huge-70b.yaml").write_text("parameters: 70000000000\n")
    answer = client.post("/api/bench/run", json={"models": f"scripted/{tmp_path / 'huge-70b.yaml'}"})
    assert answer.status_code == 422
    assert "70.00 billion" in answer.json()["error"]["problems"][0]


def test_a_judge_sees_nothing_but_judging(client: httpx.Client, served: Served) -> None:
    experiment = "tip-bench-scripted-a-against-b"
    ended_job(client, start_run(client, **RUN, experiment=experiment)["id"])
    invited = client.post("/api/judges", json={"name": "anna"}).raise_for_status().json()
    operations = [
        (method, path)
        for path, methods in client.get("/api/openapi.json").json()["paths"].items()
        for method in methods
    ]
    assert len(operations) > 15
    with served.client(invited["token"]) as judge:
        batch = judge.post("/api/judging/next").json()["batch"]["batch"]
        told = [judge.get("/api/judging/status").text, judge.get(f"/api/judging/batches/{batch}").text]
        for method, path in operations:
            ids = dict.fromkeys(("run_id", "job_id", "slot", "gate_id", "replay_id", "simulation_id"), "x")
            answer = judge.request(method, path.format(experiment=experiment, batch=batch, name="anna", **ids))
            told.append(answer.text)
            if not path.startswith(("/api/judging", "/health")):
                assert answer.status_code == 403, f"{method} {path}"
        assert judge.post("/api/judging/next", json={"experiment": experiment}).status_code == 403
        told += [judge.get(path).text for path in ("/", "/judging", f"/judging/{batch}", "/experiments", "/jobs")]
        said = "\n".join(told)
        assert "scripted" not in said
        assert experiment not in said
        assert "v1" not in said.split('"')
        assert client.delete("/api/judges/anna").status_code == 204
        assert judge.get("/api/judging/status").status_code == 401


def test_secrets_reach_neither_answers_nor_files_nor_logs(tmp_path: Path, empty_databases: Path) -> None:
    secrets = {
        "TIPBENCH_OPENAI_KEY": "sk-very-s3cret-1",
        "TIPBENCH_JUDGE_SECRET": "very-s3cret-2",
        "MLFLOW_TRACKING_PASSWORD": "very-s3cret-3",
        "TIPBENCH_ADMIN_TOKEN": "very-s3cret-4-that-is-long",
    }
    home = tmp_path / "home"
    home.mkdir()
    (home / "cache").symlink_to(empty_databases)
    store = ("--mlflow-url", f"sqlite:///{home / 'mlflow.db'}")
    served = Served(*store, TIPBENCH_HOME=str(home), **secrets)
    with served.client(secrets["TIPBENCH_ADMIN_TOKEN"]) as client:
        job = start_run(client, **RUN, experiment="tip-bench-secret", judge="lexical")
        ended = ended_job(client, job["id"])
        assert ended["state"] == "finished", ended
        told = json.dumps(ended) + client.get("/api/jobs").text + client.get("/jobs").text
        told += client.get("/api/bench/choices").text + client.get(f"/jobs/{job['id']}").text
    told += served.end() + "".join(served.out)
    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file() and "cache" not in path.parts)
    for value in secrets.values():
        assert value not in told
        assert value.encode() not in kept


def test_the_server_needs_no_database_to_start(tmp_path: Path) -> None:
    with serving("--mlflow-url", f"sqlite:///{tmp_path / 'none.db'}") as served, served.client() as client:
        assert client.get("/api/bench/experiments").json() == {"experiments": []}
        assert client.get("/api/bench/leaderboard/x").status_code == 404
        assert client.post("/api/judging/next").json() == {"batch": None}
        assert not (tmp_path / "none.db").exists()
    assert Settings().home.is_dir()


def test_a_database_that_another_program_holds_is_told_within_seconds(served: Served, client: httpx.Client) -> None:
    experiment = "tip-bench-locked"
    ended_job(client, start_run(client, **RUN, experiment=experiment)["id"])
    batch = client.post("/api/judging/next", json={"experiment": experiment}).json()["batch"]["batch"]
    slot = client.get(f"/api/judging/batches/{batch}").json()["items"][0]["slot"]
    requests: dict[str, tuple[str, str, Any]] = {
        "mlflow.db": ("POST", "/api/judging/next", {"experiment": experiment, "judge": "carl"}),
        "server/drafts.db": ("PATCH", f"/api/judging/batches/{batch}/items/{slot}", {"note": "kept"}),
        "server/access.db": ("POST", "/api/judges", {"name": "greta"}),
        "server/jobs.db": ("POST", "/api/bench/run", {**RUN, "experiment": experiment}),
    }
    with ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(len(requests)))
        for name in requests:
            other = stack.enter_context(closing(sqlite3.connect(served.home / name, isolation_level=None)))
            other.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()
        asked = {
            name: pool.submit(client.request, method, path, json=body)
            for name, (method, path, body) in requests.items()
        }
        while not all(one.done() for one in asked.values()):
            before = time.monotonic()
            assert client.get("/health").status_code == 200
            assert client.get("/static/app.css").status_code == 200
            assert time.monotonic() - before < 2, "the others wait for it"
            time.sleep(0.1)
        assert time.monotonic() - started < 12
        for name, one in asked.items():
            answer = one.result()
            assert answer.status_code == 503, (name, answer.text)
            assert "is locked: another process" in answer.json()["error"]["message"], name
    for name, (method, path, body) in requests.items():
        assert client.request(method, path, json=body).status_code < 300, name
