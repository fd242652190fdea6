"""The settings table: what is in it counts, and nothing else is read from the environment."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tipbench
from tipbench.core.errors import InvalidInput, Problems
from tipbench.core.settings import TABLE, Setting, Settings

PACKAGE = Path(tipbench.__file__).parent


def test_every_setting_has_a_name_of_its_own_and_a_help_text() -> None:
    names = [setting.name for setting in TABLE]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"(TIPBENCH|MLFLOW)_[A-Z_]+|OLLAMA_HOST", name) for name in names)
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
    opens = dict.fromkeys(("TIPBENCH_ADMIN_TOKEN", "TIPBENCH_SERVING_KEY", "TIPBENCH_METRICS_TOKEN"), "opens")
    given = {**opens, "TIPBENCH_OPENAI_KEY": "k", "PATH": "/bin", "TIPBENCH_HOME": "~/x"}
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
    named = "AGENT_KEY, TIPBENCH_ADMIN_TOKEN, TIPBENCH_METRICS_TOKEN"
    judges = {"TIPBENCH_JUDGE_MODEL": "m", "TIPBENCH_JUDGE_ENV": named, "AGENT_KEY": "a"}
    others = {
        "AWS_SECRET_ACCESS_KEY": "s",
        "PGPASSWORD": "s",
        "TIPBENCH_JUDGE_SECRET": "s",
        "TIPBENCH_ADMIN_TOKEN": "s",
        "TIPBENCH_METRICS_TOKEN": "s",
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


@pytest.fixture
def files() -> Callable[..., tuple[Path, Path]]:
    """Write the system's and the user's file, as nobody else can read them."""

    def write(system: str = "", user: str = "") -> tuple[Path, Path]:
        paths = tuple(Path(path) for path in Settings().file_paths)
        for path, text in zip(paths, (system, user), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"[settings]\n{text}", encoding="utf-8")
            path.chmod(0o600)
        return paths[0], paths[1]

    return write


def test_the_environment_goes_before_the_users_file_and_that_before_the_systems(
    files: Callable[..., tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch
) -> None:
    system, user = files("judge_model = 's'\nshadows = 's'\nstate = 's'", "judge_model = 'u'\nshadows = 'u'")
    monkeypatch.setenv("TIPBENCH_JUDGE_MODEL", "e")
    monkeypatch.setenv("TIPBENCH_SHADOWS", " ")
    settings = Settings()
    names = ("TIPBENCH_JUDGE_MODEL", "TIPBENCH_SHADOWS", "TIPBENCH_STATE", "TIPBENCH_RUNNER")
    assert [settings.get(name) for name in names] == ["e", "u", "s", "subprocess"]
    assert [settings.source(name) for name in names] == ["environment", str(user), str(system), "default"]
    assert [settings.is_set(name) for name in names] == [True, True, True, False]


def test_values_in_a_file_are_texts_numbers_and_switches(files: Callable[..., tuple[Path, Path]]) -> None:
    files(user="memory_check = false\nengine_timeout = 2.5\njudge_timeout = 30\nmlflow_tracking_insecure_tls = true")
    settings = Settings()
    assert settings.get("TIPBENCH_MEMORY_CHECK") == "false"
    assert (settings.engine_timeout_s, settings.judge_timeout_s) == (2.5, 30)
    assert settings.is_true("MLFLOW_TRACKING_INSECURE_TLS")


def test_an_empty_text_in_a_file_sets_nothing(files: Callable[..., tuple[Path, Path]]) -> None:
    files(user="state = ''")
    assert (Settings().get("TIPBENCH_STATE"), Settings().source("TIPBENCH_STATE")) == ("files", "default")


def test_an_environment_that_is_passed_in_stands_alone(files: Callable[..., tuple[Path, Path]]) -> None:
    files(user="judge_model = 'u'")
    assert Settings({}).get("TIPBENCH_JUDGE_MODEL") == ""
    assert Settings({}).folder_file is None


def test_children_get_the_files_settings_by_the_rules_of_the_environment(
    files: Callable[..., tuple[Path, Path]], tmp_path: Path
) -> None:
    files(user="judge_model = 'm'\nadmin_token = 'opens'\nopenai_key = 'k'\nhome = '/elsewhere'")
    settings = Settings()
    job = settings.job_environment(tmp_path)
    assert (job["TIPBENCH_JUDGE_MODEL"], job["TIPBENCH_OPENAI_KEY"]) == ("m", "k")
    assert "TIPBENCH_ADMIN_TOKEN" not in job
    judge = settings.judge_environment()
    assert judge["TIPBENCH_JUDGE_MODEL"] == "m"
    assert not {"TIPBENCH_OPENAI_KEY", "TIPBENCH_ADMIN_TOKEN", "TIPBENCH_HOME"} & judge.keys()
    assert settings.without_prefix("AIRFLOW_").get("TIPBENCH_JUDGE_MODEL") == "m"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("judge_comand = 'x'", "judge_comand: unknown key; did you mean judge_command?"),
        ("TIPBENCH_JUDGE_COMMAND = 'x'", "TIPBENCH_JUDGE_COMMAND: unknown key; did you mean judge_command?"),
        ("ollama_host = 'x'", "ollama_host: is an option in a file; write ollama_url under [options]"),
        ("ollama_url = 'x'", "write ollama_url under [options]"),
        ("mlflow_tracking_uri = 'x'", "write mlflow_url under [options]"),
        ("shadows = ['a']", "shadows: must be a text, a number, true or false"),
    ],
)
def test_a_setting_that_is_none_is_refused_with_its_file(
    line: str, says: str, files: Callable[..., tuple[Path, Path]]
) -> None:
    _, user = files(user=line)
    with pytest.raises(Problems) as caught:
        Settings().get("TIPBENCH_STATE")
    assert f"[settings] in {user} can't be used:\n  - " in str(caught.value)
    assert says in str(caught.value)


def test_a_secret_is_in_no_file_that_everybody_can_read(files: Callable[..., tuple[Path, Path]]) -> None:
    _, user = files(user="openai_key = 'hunter2'")
    assert Settings().get("TIPBENCH_OPENAI_KEY") == "hunter2"
    user.chmod(0o644)
    with pytest.raises(Problems, match=r"openai_key: is a secret, and every user .* run 'chmod o-r") as caught:
        Settings().get("TIPBENCH_OPENAI_KEY")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("given", ["", "relative"])
def test_the_users_file_is_where_xdg_says(given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", given)
    assert Settings().file_paths[1] == str(tmp_path / ".config/tipbench/tipbench.toml")


def test_without_a_file_no_toml_is_imported() -> None:
    code = (
        "import sys; from tipbench.core.settings import Settings; Settings().get('TIPBENCH_STATE'); "
        "print([name for name in ('tomllib', 'difflib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
