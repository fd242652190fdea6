"""Judging as a user does it: damaged files, kills in the middle, two at once, several judges."""

import copy
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.command import Finished, tipbench, tipbench_process
from tests.integration.filling import fill, filled

EXPERIMENT = "tip-bench-judged"
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.just([]),
    st.just({}),
    st.just("k7f3"),
)
ANY_JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, empty_databases: Path) -> tuple[Path, Path]:
    """A collected experiment's database and a filled-in judge file for it; tests take copies."""
    folder = tmp_path_factory.mktemp("judged")
    home = folder / "home"
    home.mkdir()
    (home / "cache").symlink_to(empty_databases)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TIPBENCH_HOME", str(home))
        store = _store(folder)
        collected = tipbench("collect", "--models", "scripted/a,scripted/b", "--prompts", "v1,v2-mentor", *store)
        assert collected.status == 0, collected.err
        assert tipbench("judge", *store, "--export", str(folder / "judge.json"), "--sample", "1").status == 0
    fill(folder / "judge.json")
    with closing(sqlite3.connect(folder / "m.db")) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder / "m.db", folder / "judge.json"


@pytest.fixture
def copied(prepared: tuple[Path, Path], tmp_path: Path) -> tuple[tuple[str, ...], Path]:
    """The store as flags, and the judge file."""
    shutil.copy(prepared[0], tmp_path / "m.db")
    return _store(tmp_path), Path(shutil.copy(prepared[1], tmp_path / "judge.json"))


def _store(folder: Path) -> tuple[str, ...]:
    return ("--experiment", EXPERIMENT, "--mlflow-url", f"sqlite:///{folder / 'm.db'}")


def _content(store: tuple[str, ...]) -> list[Any]:
    """Everything that an apply may change, without times and steps."""
    with closing(sqlite3.connect(store[3].removeprefix("sqlite:///"))) as database:
        tags = database.execute("SELECT run_uuid, key, value FROM tags ORDER BY 1, 2").fetchall()
        metrics = database.execute("SELECT run_uuid, key, value FROM latest_metrics ORDER BY 1, 2").fetchall()
    volatile = ("tipbench.applied_ms", "tipbench.scores", "tipbench.text:scores-")
    return [row for row in tags if not row[1].startswith(volatile)] + metrics


Path_ = tuple[str | int, ...]


def _places(data: Any, path: Path_ = ()) -> list[Path_]:
    found = [path]
    children: Any = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, child in children:
        found += _places(child, (*path, key))
    return found


@st.composite
def _damages(draw: st.DrawFn) -> Callable[[Any], Any]:
    """A change of any place: another value, dropped, doubled."""
    kind = draw(st.sampled_from(["change", "drop", "double"]))
    choice, value = draw(st.integers(min_value=0)), draw(ANY_JSON)

    def damage(file: Any) -> Any:
        damaged = copy.deepcopy(file)
        places = [place for place in _places(damaged) if place]
        path = places[choice % len(places)]
        parent = damaged
        for key in path[:-1]:
            parent = parent[key]
        if kind == "change":
            parent[path[-1]] = value
        elif kind == "drop":
            del parent[path[-1]]
        elif isinstance(parent, list):
            parent.append(copy.deepcopy(parent[int(path[-1])]))
        else:
            parent[f"{path[-1]} "] = parent[path[-1]]
        return damaged

    return damage


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=_damages())
def test_a_damaged_file_is_refused_with_a_sentence_or_means_the_same(
    copied: tuple[tuple[str, ...], Path], damage: Callable[[Any], Any]
) -> None:
    store, file = copied
    good = json.loads(file.read_text(encoding="utf-8"))
    before = _content(store)
    damaged = damage(good)
    path = file.with_name("damaged.json")
    path.write_text(json.dumps(damaged), encoding="utf-8")
    done = tipbench("judge", *store, "--apply", str(path), "--dry-run")
    assert done.status in (0, 1, 2), done.err
    assert "Traceback" not in done.err
    if done.status == 2:
        refused = tipbench("judge", *store, "--apply", str(path))
        assert refused.status == 2
        assert refused.err.count("Error") >= 1
    assert _content(store) == before


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=200), ANY_JSON.map(lambda data: json.dumps(data).encode())))
def test_anything_else_is_no_judge_file(copied: tuple[tuple[str, ...], Path], content: bytes) -> None:
    store, file = copied
    path = file.with_name("anything.json")
    path.write_bytes(content)
    before = _content(store)
    for flags in ((), ("--partial",)):
        done = tipbench("judge", *store, "--apply", str(path), *flags)
        assert done.status == 2
        assert "Error" in done.err
    assert _content(store) == before


def test_the_schema_next_to_the_file_fits_it_and_finds_mistakes(copied: tuple[tuple[str, ...], Path]) -> None:
    store, _ = copied
    file = Path(store[3].removeprefix("sqlite:///")).with_name("new.json")
    assert tipbench("judge", *store, "--export", str(file), "--judge", "ben").status == 0
    data = json.loads(file.read_text(encoding="utf-8"))
    assert data["$schema"] == "./new.schema.json"
    schema = json.loads(file.with_name("new.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(data)
    assert validator.is_valid(filled(data))
    for key, value in (("scores", {"relevance": 6}), ("note", 3), ("flags", {"overlong": "no"})):
        wrong = copy.deepcopy(data)
        wrong["items"][0][key] = value if not isinstance(value, dict) else {**wrong["items"][0][key], **value}
        assert not validator.is_valid(wrong)


@pytest.mark.timeout(240)
def test_killed_ten_times_in_apply_the_end_is_that_of_an_undisturbed_one(
    prepared: tuple[Path, Path], tmp_path: Path
) -> None:
    """Ten copies of a database, each with a kill at another moment, and then the same command again."""
    database, file = prepared
    calm = _copy(database, tmp_path / "calm")
    assert tipbench("judge", *calm, "--apply", str(file)).status == 0
    drawn = random.Random(11)
    killed = 0
    for number in range(10):
        store = _copy(database, tmp_path / str(number))
        command = [sys.executable, "-m", "tipbench", "judge", *store, "--apply", str(file)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not _is_written_to(tmp_path / str(number)):
            time.sleep(0.001)
        time.sleep(drawn.uniform(0, 0.06))
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
        finished = tipbench("judge", *store, "--apply", str(file))
        assert finished.status == 0, finished.err
        assert _content(store) == _content(calm)
    assert killed >= 5, "most kills hit a running process"


def _is_written_to(folder: Path) -> bool:
    log = folder / "m.db-wal"
    return log.exists() and log.stat().st_size > 0


def _copy(database: Path, folder: Path) -> tuple[str, ...]:
    folder.mkdir()
    shutil.copy(database, folder / "m.db")
    return _store(folder)


@pytest.mark.timeout(120)
def test_two_applies_at_once_lose_nothing(copied: tuple[tuple[str, ...], Path], tmp_path: Path) -> None:
    store, first = copied
    second = tmp_path / "ben.json"
    assert tipbench("judge", *store, "--export", str(second), "--judge", "ben", "--sample", "1").status == 0
    fill(second)
    done: list[Finished] = []
    threads = [
        threading.Thread(target=lambda file=file: done.append(tipbench_process("judge", *store, "--apply", str(file))))
        for file in (first, second)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.status for one in done] == [0, 0], done
    board = json.loads(tipbench("compare", *store, "--format", "json").out)
    assert board["judges"] == ["ben", "person"]
    assert sum(row["pending"] for row in board["standings"]) == 0


def test_a_judge_that_drifts_is_told_so_and_does_not_count(copied: tuple[tuple[str, ...], Path]) -> None:
    store, file = copied
    data = json.loads(file.read_text(encoding="utf-8"))
    for item in data["items"]:
        item["scores"]["tone"] = min(5, item["scores"]["tone"] + 2)
    file.write_text(json.dumps(data), encoding="utf-8")
    applied = tipbench("judge", *store, "--apply", str(file))
    assert applied.status == 1
    assert "ON HOLD: the scores are stored and don't count" in applied.out
    assert "tone: scores are" in applied.out
    assert "No answer yet: the scores of person are on hold and don't count." in tipbench("compare", *store).out
    status = tipbench("judge", *store, "--status").out.splitlines()
    assert status[0].startswith("The scores of person are on hold and don't count (tone: scores are ")
    assert status[1].endswith(f"tipbench judge --experiment {EXPERIMENT} --export judge.json --judge person")
    [line] = [line for line in status[2:] if line.strip().startswith("person")]
    assert "on hold" in line
    assert "mild by " in line
    assert len(line.rstrip()) <= 80
    unexplained = tipbench("judge", *store, "--apply", str(file), "--accept-drift", " ")
    assert unexplained.status == 2
    accepted = tipbench("judge", *store, "--apply", str(file), "--accept-drift", "the new hire reads tone kindly")
    assert accepted.status == 0, accepted.err
    assert "the new hire reads tone kindly" in tipbench("judge", *store, "--status", "--verbose").out
    assert "Judged by person" in tipbench("compare", *store, "--verbose").out


def test_status_shows_drift_over_time_and_how_far_judges_agree(copied: tuple[tuple[str, ...], Path]) -> None:
    store, first = copied
    assert tipbench("judge", *store, "--apply", str(first)).status == 0
    for judge, by in (("ben", 0), ("cleo", 1)):
        file = first.with_name(f"{judge}.json")
        tipbench("judge", *store, "--export", str(file), "--judge", judge, "--sample", "1")
        data = fill(file)
        for item in data["items"]:
            item["scores"]["relevance"] = min(5, item["scores"]["relevance"] + by)
        file.write_text(json.dumps(data), encoding="utf-8")
        tipbench("judge", *store, "--apply", str(file))
    brief, shown = (tipbench("judge", *store, "--status", *flags).out for flags in ((), ("--verbose",)))
    answer = "ben and person can be trusted: the scores agree with the anchors'. The scores of cleo are on hold"
    assert brief.startswith(answer)
    assert shown.startswith(answer)
    assert "Krippendorff" not in brief
    for words in (
        "Krippendorff's α (ordinal) over the judges that count: relevance 1.00, actionability 1.00, tone 1.00",
        "κ of ben and person on 32 shared candidates: relevance 1.00",
        "What judges disagree on most",
        "overlong: checked by code 96 times, overruled by judges 0 times.",
    ):
        assert words in shown, shown
    assert tipbench("judge", *store, "--status").status == 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "give one of --export FILE, --apply FILE, --run NAME or --status"),
        (("--export", "a.json", "--partial"), "--partial goes with --apply and --run"),
        (("--status", "--replace"), "go with --apply"),
        (("--export", "a.json", "--verbose"), "--verbose goes with --status"),
        (("--status", "--sample", "2"), "go with --export and --run"),
        (("--run", "oracle"), "there is no judge 'oracle'"),
        (("--run", "command"), "needs TIPBENCH_JUDGE_COMMAND"),
        (("--run", "webhook"), "needs TIPBENCH_JUDGE_WEBHOOK"),
        (("--run", "model"), "needs TIPBENCH_JUDGE_MODEL"),
        (("--export", "a.json", "--judge", "command"), "is an automatic judge"),
        (("--export", "a.json", "--sample", "0"), "--sample"),
        (("--export", "a.json", "--judge", "rule"), "choose another"),
    ],
)
def test_flags_that_do_not_fit(
    copied: tuple[tuple[str, ...], Path], tmp_path: Path, flags: tuple[str, ...], words: str
) -> None:
    store, _ = copied
    before = _content(store)
    done = tipbench("judge", *store, *flags, cwd=tmp_path)
    assert done.status == 2
    assert words in done.err
    assert _content(store) == before
    assert "a.json" not in os.listdir(tmp_path)  # noqa: PTH208


def _assert_blind(sent: str, store: tuple[str, ...]) -> None:
    """What went to a judge names no model, no prompt version, no run, and marks no anchor."""
    with closing(sqlite3.connect(store[3].removeprefix("sqlite:///"))) as database:
        runs = [run_id for (run_id,) in database.execute("SELECT run_uuid FROM runs")]
    text = json.dumps({**json.loads(sent), "rubric": None})
    assert [tell for tell in ("scripted", "v2-mentor", EXPERIMENT, "anchor", *runs) if tell in text] == []


def test_a_program_judges_unattended(
    copied: tuple[tuple[str, ...], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        "import json, pathlib, sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parents[2])!r})\n"
        "from tests.integration.filling import filled\n"
        "text = sys.stdin.read()\n"
        f"pathlib.Path({str(tmp_path / 'sent.json')!r}).write_text(text)\n"
        "print(json.dumps(filled(json.loads(text))))\n"
    )
    store, _ = copied
    monkeypatch.setenv("TIPBENCH_JUDGE_COMMAND", f"{sys.executable} {program}")
    done = tipbench("judge", *store, "--run", "command", "--judge", "agent-7", "--sample", "2")
    assert done.status == 0, done.err
    assert "Scores of 64 candidates by 'agent-7' were written to 32 cells" in done.out
    assert "Judged by agent-7 (κ 1.00/1.00/1.00)" in tipbench("compare", *store, "--verbose").out
    _assert_blind((tmp_path / "sent.json").read_text(), store)
    again = tipbench("judge", *store, "--run", "command", "--judge", "agent-7", "--sample", "2")
    assert again.status == 2
    assert "nothing in experiment" in again.err


def test_a_program_that_fails_changes_nothing(
    copied: tuple[tuple[str, ...], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = copied
    monkeypatch.setenv("TIPBENCH_JUDGE_COMMAND", f"{sys.executable} -c 'import sys; sys.exit(\"no idea\")'")
    done = tipbench("judge", *store, "--run", "command")
    assert done.status == 2
    assert "no idea" in done.err
    board = json.loads(tipbench("compare", *store, "--format", "json").out)
    assert board["judges"] == []


def test_a_model_that_gives_the_same_to_everything_is_in_quarantine(
    copied: tuple[tuple[str, ...], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "flat.yaml"
    script.write_text(json.dumps({"parameters": 10**9, "rules": [{"answer": '{"score": 3}'}]}))
    store, _ = copied
    monkeypatch.setenv("TIPBENCH_JUDGE_MODEL", f"scripted/{script}")
    done = tipbench("judge", *store, "--run", "model", "--judge", "flat", "--limit", "8", "--sample", "1")
    assert done.status == 0, "eight candidates carry eight anchors: too few to tell"
    assert "Drift is not assessable: 8 anchors scored, and it takes 12." in done.out
    done = tipbench(
        "judge", *store, "--run", "model", "--judge", "flat", "--limit", "8", "--sample", "1", "--seed", "2"
    )
    assert done.status == 1, "with the eight of before they are enough"
    assert "ON HOLD" in done.out
    assert f"Next: tipbench judge --experiment {EXPERIMENT}" in done.out
