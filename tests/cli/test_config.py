"""`tipbench config show`: every option and setting with its source, and no secret."""

import json
from pathlib import Path
from typing import Any

import pytest

from tipbench.bench.options import Options
from tipbench.cli.main import run
from tipbench.core.settings import TABLE, Settings

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def user_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    secrets = "".join(f'{one.name.removeprefix("TIPBENCH_").lower()} = "{SECRET}"\n' for one in TABLE if one.secret)
    path = Path(Settings().file_paths[1])
    path.parent.mkdir(parents=True)
    path.write_text(
        f'[options]\nmlflow_url = "http://me:{SECRET}@m/?k={SECRET}"\nn_tips = 3\n'
        f'[settings]\njudge_webhook = "https://x:{SECRET}@h/hook?k={SECRET}"\njudge_command = "judge -u http://x:{SECRET}@h"\n'
        f"{secrets}"
    )
    path.chmod(0o600)
    return path


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(["config", "show", "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_every_option_and_setting_has_a_value_and_a_source(
    user_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "box")
    monkeypatch.setenv("TIPBENCH_SHADOWS", "egreedy-v2-shadow")
    found = shown(capsys)
    options = {row["key"]: row for row in found["options"]}
    settings = {row["name"]: row for row in found["settings"]}
    assert (list(options), list(settings)) == (list(Options.model_fields), [one.name for one in TABLE])
    assert options["n_tips"] == {"key": "n_tips", "value": 3, "source": str(user_file)}
    assert options["seed"] == {"key": "seed", "value": 0, "source": "default"}
    assert options["ollama_url"]["value"] == "http://box:11434"
    assert options["ollama_url"]["source"] == "environment OLLAMA_HOST"
    assert settings["TIPBENCH_SHADOWS"]["source"] == "environment TIPBENCH_SHADOWS"
    assert settings["TIPBENCH_STATE"] == {
        "name": "TIPBENCH_STATE", "value": "files", "source": "default", "secret": False, "is_set": False,
    }  # fmt: skip
    assert settings["TIPBENCH_OPENAI_KEY"] == {
        "name": "TIPBENCH_OPENAI_KEY", "value": None, "source": str(user_file), "secret": True, "is_set": True,
    }  # fmt: skip


def test_the_files_come_first_in_their_order(user_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("tipbench.toml").write_text("[options]\n")
    system = Settings().file_paths[0]
    assert shown(capsys)["files"] == [
        {"path": system, "read": False},
        {"path": str(user_file), "read": True},
        {"path": "./tipbench.toml", "read": True},
    ]
    assert run(["config", "show"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"Files read: {user_file}, ./tipbench.toml", f"Not there: {system}"]


@pytest.mark.parametrize("form", ["table", "json"])
def test_no_secret_is_shown_wherever_it_stands(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config", "show", "--format", form]) == 0
    captured = capsys.readouterr()
    assert SECRET not in captured.out + captured.err
    assert "https://h/hook?" in captured.out


def test_a_file_that_can_not_be_used_is_the_answer(user_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    user_file.chmod(0o666)
    assert run(["config", "show"]) == 2
    assert f"{user_file} can be changed by other users" in capsys.readouterr().err
