"""The settings table: what is in it counts, and nothing else is read from the environment."""

import re
from pathlib import Path

import pytest

import tipbench
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import TABLE, Setting, Settings

PACKAGE = Path(tipbench.__file__).parent


def test_every_setting_has_a_name_of_its_own_and_a_help_text() -> None:
    names = [setting.name for setting in TABLE]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"(TIPBENCH|MLFLOW)_[A-Z_]+", name) for name in names)
    assert all(setting.help.endswith(".") for setting in TABLE)


def test_what_must_stay_secret_is_marked_so() -> None:
    telling = {
        setting.name
        for setting in TABLE
        if re.search("KEY|PASSWORD|TOKEN|USERNAME|SECRET|ANCHORS|POSTGRESQL_URL", setting.name)
    }
    assert telling == {setting.name for setting in TABLE if setting.secret}


@pytest.mark.parametrize("setting", TABLE, ids=lambda setting: str(setting.name))
def test_a_setting_is_its_default_until_it_is_given(setting: Setting) -> None:
    assert Settings({}).get(setting.name) == setting.default
    assert Settings({setting.name: "  "}).get(setting.name) == setting.default
    assert not Settings({setting.name: ""}).is_set(setting.name)
    assert Settings({setting.name: " given "}).get(setting.name) == "given"
    assert Settings({setting.name: "given"}).is_set(setting.name)


def test_a_name_that_is_not_in_the_table_can_not_be_read() -> None:
    with pytest.raises(KeyError):
        Settings({}).get("TIPBENCH_HOEM")


def test_no_other_module_reads_the_environment() -> None:
    readers = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if re.search(r"\bos\.(getenv|environ\b(?!\.setdefault))|from os import", path.read_text(encoding="utf-8"))
    ]
    assert [reader for reader in readers if reader != "core/settings.py"] == []


def test_state_lives_in_one_place_wherever_a_command_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert Settings({"TIPBENCH_HOME": "~/bench"}).home == tmp_path / "bench"
    assert Settings({}).home.is_absolute()
    assert Settings({}).home.name == "tipbench"


@pytest.mark.parametrize(
    ("given", "is_true"), [("true", True), ("1", True), ("YES", True), ("false", False), ("", False)]
)
def test_a_switch_is_on_for_the_usual_words(given: str, is_true: bool) -> None:
    assert Settings({"MLFLOW_TRACKING_INSECURE_TLS": given}).is_true("MLFLOW_TRACKING_INSECURE_TLS") == is_true


def test_the_time_limit_is_in_seconds() -> None:
    assert Settings({}).engine_timeout_s == 600
    assert Settings({"TIPBENCH_ENGINE_TIMEOUT": "2.5"}).engine_timeout_s == 2.5


@pytest.mark.parametrize("given", ["0", "-1", "nan", "inf", "ten", "86400"])
def test_a_time_limit_that_is_none_is_refused_by_name_and_value(given: str) -> None:
    with pytest.raises(InvalidInput, match=f"TIPBENCH_ENGINE_TIMEOUT .* '{given}'"):
        _ = Settings({"TIPBENCH_ENGINE_TIMEOUT": given}).engine_timeout_s


def test_a_home_of_somebody_who_does_not_exist_is_a_folder_like_any_other() -> None:
    assert Settings({"TIPBENCH_HOME": "~nobody-of-that-name/x"}).home.name == "x"


def test_a_job_gets_the_servers_environment_without_the_way_into_the_server(tmp_path: Path) -> None:
    given = {"TIPBENCH_ADMIN_TOKEN": "opens", "TIPBENCH_OPENAI_KEY": "k", "PATH": "/bin", "TIPBENCH_HOME": "~/x"}
    expected = {"TIPBENCH_OPENAI_KEY": "k", "PATH": "/bin", "TIPBENCH_HOME": str(tmp_path)}
    assert Settings(given).job_environment(tmp_path) == expected


def test_rows_of_another_table_are_read_by_the_same_rules() -> None:
    row = Setting("TIPBENCH_PART_URL", "http://here", "Where it is.")
    assert Settings({}).value(row) == "http://here"
    assert Settings({row.name: " http://there "}).value(row) == "http://there"


@pytest.mark.parametrize("end", ["TOKEN", "PASSWORD", "USERNAME", "SECRET", "KEY"])
def test_secrets_of_other_tables_stay_here(end: str, tmp_path: Path) -> None:
    settings = Settings({f"TIPBENCH_PART_{end}": "hunter2", f"OTHER_{end}": "theirs"})
    assert settings.environment_without_secrets() == {f"OTHER_{end}": "theirs"}
    assert settings.job_environment(tmp_path) == {f"OTHER_{end}": "theirs", "TIPBENCH_HOME": str(tmp_path)}


def test_a_judge_gets_what_programs_need_and_what_was_named() -> None:
    usual = {
        "PATH": "/bin",
        "HOME": "/h",
        "LANG": "C",
        "TMPDIR": "/t",
        "TZ": "UTC",
        "https_proxy": "p",
        "SSL_CERT_FILE": "c",
    }
    judges = {"TIPBENCH_JUDGE_MODEL": "m", "TIPBENCH_JUDGE_ENV": "AGENT_KEY, TIPBENCH_ADMIN_TOKEN", "AGENT_KEY": "a"}
    others = {
        "AWS_SECRET_ACCESS_KEY": "s",
        "PGPASSWORD": "s",
        "TIPBENCH_JUDGE_SECRET": "s",
        "TIPBENCH_ADMIN_TOKEN": "s",
        "TIPBENCH_HOME": "/h/tipbench",
        "MLFLOW_TRACKING_URI": "http://m",
        "TIPBENCH_OPENAI_KEY": "s",
        "SSH_AUTH_SOCK": "/s",
    }
    assert Settings({**usual, **judges, **others}).judge_environment() == {**usual, **judges}


def test_nobody_sees_credentials_in_an_address() -> None:
    given = {"TIPBENCH_PART_URL": "http://me:hunter2@part", "TIPBENCH_OPENAI_URL": "http://me:hunter2@open/v1"}
    assert Settings(given).environment_without_secrets() == {
        "TIPBENCH_PART_URL": "http://part",
        "TIPBENCH_OPENAI_URL": "http://open/v1",
    }
