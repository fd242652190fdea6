"""Makes a home as this version leaves it, for the tests of later ones: one archive a release (CONTRIBUTING.md).

    python -m tests.integration.homes.make tests/integration/homes/0.2.0.tar.xz

`home` in it is a TIPBENCH_HOME in which everything is under way: experiments that are judged, published, and that a
killed collection left; a decision in its rounds; an agent's folder that is half filled in; a server with jobs, judges
and a batch that somebody has begun; a recommender, killed, with users of several policies, a prior, gates and
promotions. `files` has what was given out, and what both servers answered: `test_homes_of_earlier_versions.py` goes on
from there.
"""

import json
import os
import shutil
import sqlite3
import sys
import tarfile
from collections.abc import Iterable
from contextlib import chdir, closing
from pathlib import Path
from typing import Any

import httpx
import psutil
import yaml

from tests.integration.collecting import collect_slowly, started
from tests.integration.command import tipbench_process
from tests.integration.filling import faithful_scores, fill
from tests.integration.recommending import recommending
from tests.integration.serving import ended_job, serving, start_run, until
from tests.recommender.gates import held_gate
from tests.recommender.service.asking import request, reward
from tipbench.core.settings import Settings
from tipbench.recommender.store.moving import open_store
from tipbench.server.jobs.simulation_asked import built_in_world

MADE_AT = Path("/tmp/tipbench-kept")  # paths in the archive begin so; whoever unpacks it replaces that
HOME, FILES, PACKED = MADE_AT / "home", MADE_AT / "files", MADE_AT / "packed"
DATABASE = HOME / "mlflow.db"
BEFORE, DECIDED = ("--experiment", "tip-bench-before"), ("--experiment", "tip-pool-decided")
REWARDS = (-0.5, 1.0)
TOLD: dict[str, Any] = {}  # tokens and names that the tests ask with
ADMIN_PATHS = (
    *("/api/bench/experiments", "/api/bench/leaderboard/tip-bench-before", "/api/bench/runs/tip-bench-before"),
    *("/api/bench/decisions/tip-pool-decided", "/api/jobs", "/api/judges", "/api/judging/status"),
    *("/api/recommend/gates", "/api/recommend/replays", "/api/recommend/promotions", "/api/recommend/shadows"),
    *("/api/recommend/simulations", "/api/recommend/rewards/tip-bench-before"),
)


def run(*words: str, status: int = 0) -> str:
    done = tipbench_process(*words)
    assert done.status == status, f"{words}: {done.out} {done.err}"
    return done.out


def judged_and_published() -> None:
    """By rules, by lena, and by ben, whose file waits to be applied; an agent is halfway through its folder."""
    grid = ("--models", "scripted/ant,scripted/bee", "--prompts", "v1", "--n-scenarios", "2", "--n-tips", "2")
    run("collect", *grid, *BEFORE)
    run("judge", *BEFORE, "--run", "lexical")
    for judge, file in (("lena", "first.json"), ("ben", "second.json")):
        run("judge", *BEFORE, "--judge", judge, "--export", str(FILES / file), "--items", "20")
        fill(FILES / file)
    run("judge", *BEFORE, "--apply", str(FILES / "first.json"))
    run("publish", *BEFORE)
    run("judge", *BEFORE, "--judge", "claude-code", "--export", str(FILES / "agent"), "--for", "agent")
    (part,) = (FILES / "agent" / "parts").iterdir()
    items = json.loads(part.read_text())["items"]
    scales = dict.fromkeys(("relevance", "actionability", "tone"), (1, 5))
    scores = {one["slot"]: faithful_scores(one["text"], scales) for one in items[: len(items) // 2]}
    (FILES / "agent" / "scores" / part.name).write_text(json.dumps(scores))
    run("judge", "--run", "lexical", "--calibrate", status=1)
    (HOME / "judges.toml").write_text('[house-rules]\nrun = "command"\ncommand = "cat"\n')
    shutil.copytree(Path(__file__).parents[1] / "suites" / "product", FILES / "product")
    run("suite", "register", str(FILES / "product"))


def decided_in_rounds() -> None:
    """One round is applied; the file of the next is filled in."""
    for name in ("good", "poor"):
        answer = json.dumps([f"Take the next step, a {name} one."])
        (FILES / f"{name}.yaml").write_text(yaml.safe_dump({"parameters": 1_000_000, "rules": [{"answer": answer}]}))
    first = (
        "--models",
        "scripted/good.yaml,scripted/poor.yaml",
        "--prompts",
        "v1",
        "--n-tips",
        "1",
        "--good-enough",
        "0",
    )
    with chdir(FILES):  # so that no path is part of what is stored under a digest
        run("decide", *first, *DECIDED, "--export", "decide.json", status=1)
        fill(FILES / "decide.json")
        run("decide", *DECIDED, "--export", "decide.json", status=1)
        fill(FILES / "decide.json")


def killed_while_collecting() -> None:
    """With cells in its journal that are not in the database, which another program holds."""
    run(
        "collect",
        "--models",
        "scripted/ant",
        "--prompts",
        "v1",
        "--n-scenarios",
        "1",
        "--experiment",
        "tip-bench-killed",
    )
    command = collect_slowly(FILES, f"sqlite:///{DATABASE}", "tip-bench-killed", latency_s=0.2)
    with closing(sqlite3.connect(DATABASE)) as other:
        other.execute("BEGIN IMMEDIATE")
        process = started(command)
        until(lambda: sum(path.read_bytes().count(b"\n") for path in HOME.glob("journal/*.jsonl")) >= 2 + 8)
        process.kill()
        process.communicate()
    (journal,) = HOME.glob("journal/*.jsonl")
    TOLD["undelivered"] = journal.read_bytes().count(b"\n") - 2


def served_by_the_admin_server() -> None:
    """A job, a simulation, an invited judge, and a batch with one score that is saved and not handed in."""
    with serving(TIPBENCH_ADMIN_TOKEN="") as served:
        TOLD["admin_token"] = next(word for line in served.out for word in line.split() if len(word) == 43)
        with served.client(TOLD["admin_token"]) as admin:
            given = {"models": "scripted/ant", "prompts": "v1", "n_scenarios": 1, "experiment": "tip-bench-job"}
            TOLD["job"] = start_run(admin, **given)["id"]
            assert ended_job(admin, TOLD["job"])["state"] == "finished"
            TOLD["judge_token"] = _post(admin, "/api/judges", {"name": "ann"})["token"]
            small = {"kind": "run", "policies": ["egreedy"], "seeds": 1, "steps": 4}
            simulation = _post(admin, "/api/recommend/simulations", small)["id"]
            until(lambda: admin.get(f"/api/recommend/simulations/{simulation}").json()["state"] == "finished")
            asked = {"experiment": "tip-bench-job", "items": 20}
            TOLD["open_batch"] = _post(admin, "/api/judging/next", asked)["batch"]["batch"]
            path = f"/api/judging/batches/{TOLD['open_batch']}"
            TOLD["slot"] = admin.get(path).json()["items"][0]["slot"]
            saved = {"scores": {"tone": 4}, "note": "so far"}
            admin.patch(f"{path}/items/{TOLD['slot']}", json=saved).raise_for_status()


def promoted() -> None:
    """A small gate fails. Promotions are by records of gates that nobody ran: one that passes takes minutes."""
    world = FILES / "world.yaml"
    personas = built_in_world().only(["specialist", "night-owl", "indifferent"])
    world.write_text(yaml.safe_dump(personas.model_dump(mode="json")), encoding="utf-8")
    small = ("--world", str(world), "--seeds", "10", "--steps", "3")
    run("sim", "gate", "--candidate", "ucb/v3", *small, status=1)
    held_gate(HOME, "ucb/v3")
    run("recommend", "promote", "ucb/v3", "--yes")
    with recommending("--shadow", "egreedy-v2-shadow") as service, service.client() as client:
        for number in range(12):
            _serve(client, number, "" if number % 3 else "/egreedy")
    run("recommend", "prior", "fit", "--min-users", "3")
    run("sim", "replay", "--candidate", "egreedy/v2", status=1)
    with closing(open_store(Settings())) as store:
        (digest,) = store.priors.digests()
        held_gate(HOME, f"ucb/v3@{digest}", "ucb/v3", read_prior=store.priors.read)
    run("recommend", "promote", f"ucb/v3@{digest}", "--yes")


def answered() -> dict[str, dict[str, Any]]:
    """What both servers say. The home is packed as a power cut of the recommender may leave it: states are lost.

    They are in its journal.
    """
    with recommending() as service, service.client() as client:
        for number in range(12, 20):
            _serve(client, number, "" if number % 2 else "/egreedy")
        TOLD["rewarded"], TOLD["waiting"] = reward("e17", REWARDS[1], "u1"), [reward("e15", 1.0, "u3")]
        paths = ["/health", *(f"/stats/{policy}/u{user}" for policy in ("egreedy", "ucb/v3") for user in range(4))]
        recommender = _got(client, paths)
        for worker in (*service.workers(), psutil.Process(service.pid)):
            worker.kill()
    shutil.copytree(HOME, PACKED)
    for name in ("u0_egreedy.json", "u1_ucb_v3.json"):
        (PACKED / "recommender" / "state" / name).unlink()
    with serving(TIPBENCH_ADMIN_TOKEN="") as served, served.client(TOLD["admin_token"]) as admin:
        return {"recommender": recommender, "admin": _got(admin, ADMIN_PATHS)}


def _got(client: httpx.Client, paths: Iterable[str]) -> dict[str, Any]:
    return {path: client.get(path).raise_for_status().json() for path in paths}


def _serve(client: httpx.Client, number: int, policy: str) -> None:
    """One event in three gets no reward."""
    user, event = f"u{number % 4}", f"e{number}"
    _post(client, f"/score{policy}", request(event, user))
    if number % 3:
        _post(client, f"/reward{policy}", reward(event, REWARDS[number % 2], user))


def _post(client: httpx.Client, path: str, body: dict[str, Any]) -> Any:
    return client.post(path, json=body).raise_for_status().json()


def main() -> int:
    archive = Path(sys.argv[1])
    if MADE_AT.exists() or archive.exists():
        print(f"{MADE_AT} and {archive} must not be there: remove what is.", file=sys.stderr)
        return 2
    for name in (name for name in os.environ if name.startswith(("TIPBENCH_", "MLFLOW_"))):
        del os.environ[name]
    os.environ |= {"TIPBENCH_HOME": str(HOME), "MLFLOW_TRACKING_URI": f"sqlite:///{DATABASE}"}
    os.environ["XDG_CONFIG_HOME"] = str(MADE_AT / "config")  # nobody's tipbench.toml
    FILES.mkdir(parents=True)
    HOME.mkdir(mode=0o700)
    for step in (
        judged_and_published,
        decided_in_rounds,
        served_by_the_admin_server,
        promoted,
        killed_while_collecting,
    ):
        print(step.__name__)
        step()
    for name, content in {"answers.json": answered(), "told.json": TOLD}.items():
        (FILES / name).write_text(json.dumps(content, indent=1))
    for name in ("cache", "locks"):
        shutil.rmtree(PACKED / name, ignore_errors=True)
    with tarfile.open(archive, "w:xz", preset=9) as made:
        made.add(PACKED, "home")
        made.add(FILES, "files")
    shutil.rmtree(MADE_AT)
    print(f"{archive}: {archive.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
