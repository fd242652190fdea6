"""`tipbench sim`, as a user types it."""

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.integration.command import tipbench
from tests.recommender.simulation.worlds import a_world
from tipbench.core.identity import data_digest
from tipbench.core.paths import gates_folder
from tipbench.server.jobs.progress import read_progress
from tipbench.server.jobs.simulation_asked import world_file

QUICK = ("--steps", "5", "--workers", "1")


@pytest.fixture
def world(tmp_path: Path) -> str:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(a_world().model_dump(mode="json")), encoding="utf-8")
    return str(path)


def test_help_is_there_without_the_code() -> None:
    assert re.search(r"run .*\n(.|\n)*gate ", tipbench("sim", "--help").out)
    assert "tipbench sim gate --candidate egreedy/v2" in tipbench("sim", "gate", "--help").out


def test_a_run_and_how_far_it_is(world: str, tmp_path: Path) -> None:
    progress = tmp_path / "progress.json"
    done = tipbench("sim", "run", "--world", world, "--seeds", "2", *QUICK, "--progress", str(progress))
    assert done.status == 0, done.err
    assert "Next: " in done.out.splitlines()[1]
    assert "category-mean" in done.out
    assert "likes-inbox" not in done.out
    assert "[4/4] lives simulated" in done.err
    told = read_progress(progress)
    assert told
    assert (told.phase, told.cells, told.done) == ("done", 4, 4)
    assert told.message.startswith("reward a decision over all personas: egreedy ")


def test_a_gate_that_can_not_be_kept_is_shown_all_the_same(world: str, home: Path) -> None:
    gates_folder(home).parent.mkdir(parents=True)
    gates_folder(home).touch()
    done = tipbench("sim", "gate", "--candidate", "linucb", "--world", world, "--seeds", "10", *QUICK)
    assert done.status == 2
    assert "linucb may not go live, because its gain over the incumbent" in done.out
    assert "It could not be stored, so it can't be used for a promotion." in done.out
    assert f"File exists: {gates_folder(home)}" in done.err


def test_what_can_not_be_written_out_is_kept_and_shown(world: str, home: Path) -> None:
    done = tipbench(
        *(
            "sim",
            "gate",
            "--candidate",
            "linucb",
            "--world",
            world,
            "--seeds",
            "10",
            *QUICK,
            "--out",
            "/proc/found.json",
        )
    )
    assert done.status == 2
    assert "--out /proc/found.json can't be written: " in done.err
    assert "Stored as gate" in done.out
    assert len(list(gates_folder(home).iterdir())) == 1


def test_a_gate_and_its_record(world: str, home: Path) -> None:
    done = tipbench(
        "sim", "gate", "--candidate", "linucb", "--world", world, "--seeds", "10", *QUICK, "--format", "json"
    )
    assert done.status == 1, done.err
    found = json.loads(done.out)
    (kept,) = gates_folder(home).iterdir()
    record = json.loads(kept.read_bytes())
    assert record["verdict"] == found["gate"]
    assert record["plan"] == found["plan"] == record["outcome"]["plan"]
    assert [arm["name"] for arm in record["plan"]["arms"]] == [
        *("linucb", "egreedy", "category-mean", "most-popular", "egreedy, again")
    ]
    assert set(record) == {"schema", "id", "made_ms", "tipbench", "plan", "rules", "verdict", "outcome"}
    assert kept.stem == record["id"] == data_digest({key: record[key] for key in record if key != "id"})[:16]
    assert f"Stored as gate {kept.stem}. Nothing changes: egreedy stays." in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("run", "--policies", "egreedy,thompson"), "no policy 'thompson' to simulate; there are egreedy, egreedy/v2"),
        (("run", "--policies", " , "), "--policies names nothing"),
        (("run", "--personas", "nobody"), "no persona 'nobody'; there are early-planner"),
        (("run", "--world", "none.yaml"), "the world none.yaml can't be read: No such file"),
        (("run", "--offered", "61"), "61 candidates can't be offered from a pool of 60 tips"),
        (("run", "--offered", "201"), "201 is not in the range"),
        (("run", "--seeds", "0"), "0 is not in the range"),
        (("run", "--timeout", "0"), "0.0 is not in the range"),
        (("run", "--timeout", "0.05"), "took more than 0.05 s; give it more with --timeout, or fewer seeds"),
        (("run", "--timeout", "nan"), "nan is not a number of seconds"),
        (("run", "--out", "none/found.json"), "--out none/found.json can't be written; name a file in a folder"),
        (("run", "--progress", "none/progress.json"), "progress can't be written to none/progress.json"),
        (("gate",), "Missing option '--candidate'"),
        (("gate", "--candidate", "egreedy"), "egreedy is both candidate and incumbent; name two policies"),
        (("gate", "--candidate", "linucb", "--seeds", "9"), "9 seeds are too few for a gate; use 10 or more"),
        (("gate", "--candidate", "linucb", "--incumbent", "me"), "no policy 'me' to simulate"),
    ],
)
def test_refused_in_one_sentence(words: tuple[str, ...], told: str, home: Path) -> None:
    refused = tipbench("sim", *words)
    assert refused.status == 2
    assert told in refused.err
    assert refused.out == ""
    assert not gates_folder(home).exists()


def test_what_the_suite_brings_is_what_is_simulated() -> None:
    assert world_file().name == "world-v3.yaml"
    assert world_file().parent.name == "tip"
