"""What `tipbench backup` and `tipbench restore` say."""

import json
from pathlib import Path

import pytest

from tipbench.cli.main import run


@pytest.fixture
def file(home: Path, tmp_path: Path) -> Path:
    (home / "experiments").mkdir()
    (home / "experiments" / "a.json").write_text(json.dumps({"kept_at": "http://me:secret@bench:5000"}))
    return tmp_path / "b.tar.gz"


def test_what_is_elsewhere_is_said_and_that_there_are_secrets_in_it(
    home: Path, file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIPBENCH_STATE", "postgresql")
    (home / "suites.json").write_text(json.dumps({"own": f"{home}/suites/own", "commits": "/srv/commits"}))
    (home / "weights").mkdir()
    (home / "weights" / "smollm2-135m.gguf").touch()
    assert run(["backup", str(file)]) == 0
    said = capsys.readouterr()
    first, *missing = said.out.splitlines()
    assert first.startswith(f"{file}: 0 MB, which hold 2 files of {home} (")
    assert missing == [
        "Not in it: results at http://bench:5000; back that up right after this",
        "Not in it: users' states in PostgreSQL; back that up right after this",
        "Not in it: the suite in /srv/commits",
        "Not in it: weights (smollm2-135m); 'tipbench pull' installs what it knows",
    ]
    assert "It holds tokens and keys" in said.err


def test_restored_with_the_next_steps(
    home: Path, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["backup", str(file)]) == 0
    other = tmp_path / "other"
    monkeypatch.setenv("TIPBENCH_HOME", str(other))
    capsys.readouterr()
    assert run(["restore", str(file)]) == 0
    said = capsys.readouterr()
    first, *more = said.out.splitlines()
    assert first.startswith(f"{other}: 1 file as they were on 2")
    assert more == ["Next: tipbench doctor, then start the servers; queued jobs start with them."]
    assert "users who were reset or erased since are back" in said.err
    assert (other / "experiments" / "a.json").exists()
    assert run(["restore", str(file)]) == 2
    assert f"Error: {other} is not empty" in capsys.readouterr().err
