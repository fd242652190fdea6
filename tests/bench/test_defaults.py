"""Defaults of this machine: flags go before the environment, that before files, and every value has its source."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tipbench.bench.defaults import environment_ollama_url, machine_defaults, sourced_defaults, url_of_host
from tipbench.bench.engines.catalog import open_engines
from tipbench.bench.options import Options, endpoint, make_options
from tipbench.core.errors import InvalidInput, Problems
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable

ALL = tuple(Options.model_fields)
Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write the file of the system, the user or the folder that we are in."""
    monkeypatch.chdir(tmp_path)

    def write(scope: str, options: str) -> Path:
        system, user = Settings().file_paths
        path = Path({"system": system, "user": user, "folder": "./tipbench.toml"}[scope])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"[options]\n{options}\n", encoding="utf-8")
        path.chmod(0o644)
        return path

    return write


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("gpu-box", "http://gpu-box:11434"),
        ("gpu-box:1234", "http://gpu-box:1234"),
        (":1234", "http://127.0.0.1:1234"),
        ("127.0.0.1", "http://127.0.0.1:11434"),
        ("http://gpu-box", "http://gpu-box:80"),
        ("https://gpu-box", "https://gpu-box:443"),
        ("https://gpu-box:8443/ollama/", "https://gpu-box:8443/ollama"),
        ("gpu-box/ollama", "http://gpu-box:11434/ollama"),
        ("HTTP://Gpu-Box", "http://gpu-box:80"),
        ("[::1]:1234", "http://[::1]:1234"),
        ("[::1]", "http://[::1]:11434"),
        ("fe80::1", "http://[fe80::1]:11434"),
        ("https://[fe80::1]", "https://[fe80::1]:443"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        ("0.0.0.0:1234", "http://127.0.0.1:1234"),
        ("http://0.0.0.0:1234", "http://127.0.0.1:1234"),
        ("::", "http://[::1]:11434"),
        ("[::]:1234", "http://[::1]:1234"),
        ('  "gpu-box:1234" ', "http://gpu-box:1234"),
        ("'gpu-box'", "http://gpu-box:11434"),
    ],
)
def test_ollama_host_is_read_as_ollama_does(value: str, url: str) -> None:
    assert url_of_host(value) == url
    assert environment_ollama_url(Settings({"OLLAMA_HOST": value})) == url


@pytest.mark.parametrize(
    "value",
    ["a b", "a,b", "ftp://x", "x:y", "x:99999", "x:0", "x:", "[::1", "[::1]x:1", "[x]", "a\nb", "h?x=1", "h#x", "h\\x"],
)
def test_a_host_that_is_none_is_refused_by_name_and_value(value: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        url_of_host(value)
    message = str(caught.value)
    assert message.startswith("OLLAMA_HOST is ")
    assert repr(value)[1:-1] in message
    assert "\n" not in message


def test_a_password_in_a_host_is_not_repeated() -> None:
    with pytest.raises(InvalidInput, match="OLLAMA_HOST") as caught:
        url_of_host("http://me:hunter2@box")
    assert "hunter2" not in str(caught.value)


@given(st.text(max_size=30))
@example("[::ffff:1.2.3.4]:1")
@example("http://")
def test_any_host_is_an_endpoint_or_a_sentence(value: str) -> None:
    url = message = ""
    try:
        url = url_of_host(value)
    except InvalidInput as error:
        message = str(error)
    assert message == printable(message)
    if url:
        assert make_options({"ollama_url": url}).ollama_urls == (url,)
        assert endpoint(url) == endpoint(endpoint(url))
        assert url_of_host(url) == url


def test_our_variable_goes_before_ollamas() -> None:
    both = Settings({"TIPBENCH_OLLAMA_URL": "http://ours:1/", "OLLAMA_HOST": "theirs"})
    assert sourced_defaults(both)["ollama_url"] == ("http://ours:1", "environment TIPBENCH_OLLAMA_URL")
    assert sourced_defaults(Settings({"OLLAMA_HOST": "theirs"}))["ollama_url"] == (
        "http://theirs:11434",
        "environment OLLAMA_HOST",
    )
    assert sourced_defaults(Settings({"OLLAMA_HOST": " '' "}))["ollama_url"].source == "default"


def test_a_variable_that_is_no_address_is_named_without_its_password() -> None:
    with pytest.raises(InvalidInput, match=r"^TIPBENCH_OLLAMA_URL can't be used: ollama_url: must start") as caught:
        environment_ollama_url(Settings({"TIPBENCH_OLLAMA_URL": "me:hunter2@box"}))
    assert "hunter2" not in str(caught.value)


def test_what_nobody_asked_for_is_not_looked_at() -> None:
    assert machine_defaults(Settings({"OLLAMA_HOST": "a b"}), ["mlflow_url", "seed"]) == {}


def test_later_files_go_before_earlier_ones_and_the_environment_before_all(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = write("system", 'n_tips = 1\nseed = 1\nrepeats = 1\nollama_url = "http://s"')
    user = write("user", "n_tips = 2\nseed = 2\nmodels = ['a', 'b']")
    folder = write("folder", "n_tips = 3")
    found = sourced_defaults(Settings())
    assert found["n_tips"] == (3, f"./{folder.name}")
    assert found["seed"] == (2, str(user))
    assert found["models"] == ("a,b", str(user))
    assert found["repeats"] == (1, str(system))
    assert found["ollama_url"] == ("http://s", str(system))
    assert found["diversity"] == (False, "default")
    assert list(found) == list(ALL)
    monkeypatch.setenv("OLLAMA_HOST", "box")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:pw@m")
    assert sourced_defaults(Settings())["ollama_url"].value == "http://box:11434"
    defaults = machine_defaults(Settings(), ALL)
    assert (defaults["n_tips"], defaults["seed"], defaults["ollama_url"]) == (3, 2, "http://box:11434")
    assert "mlflow_url" not in defaults, "whoever opens the store reads it, with its credentials"
    assert "diversity" not in defaults, "a suite's own default may apply"


@pytest.mark.parametrize("scope", ["system", "user", "folder"])
def test_a_bad_option_is_refused_with_file_and_key(scope: str, write: Write) -> None:
    path = write(scope, "n_tip = 3\nseed = -1")
    with pytest.raises(Problems) as caught:
        machine_defaults(Settings(), ["seed"])
    message = str(caught.value)
    assert f"{path.name} can't be used:" in message
    assert "n_tip: unknown key; did you mean n_tips?" in message
    assert "seed: " in message


@pytest.mark.parametrize("name", ["MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD"])
def test_credentials_go_to_no_server_that_only_a_folder_names(
    name: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("folder", 'mlflow_url = "http://evil.example"')
    assert machine_defaults(Settings(), ALL)["mlflow_url"] == "http://evil.example"
    monkeypatch.setenv(name, "hunter2")
    with pytest.raises(InvalidInput, match=rf"{name} would be sent there.*--mlflow-url http://evil\.example") as caught:
        machine_defaults(Settings(), ALL)
    assert "hunter2" not in str(caught.value)
    assert "mlflow_url" not in machine_defaults(Settings(), ["seed"]), "a flag names another"
    write("folder", 'mlflow_url = "sqlite:///mine.db"')
    assert machine_defaults(Settings(), ALL)["mlflow_url"] == "sqlite:///mine.db"
    Path("tipbench.toml").unlink()
    write("user", 'mlflow_url = "http://trusted"')
    assert machine_defaults(Settings(), ALL)["mlflow_url"] == "http://trusted"


@pytest.mark.parametrize(
    ("given", "address"),
    [({}, "http://box:11434"), ({"ollama_url": "http://localhost:11434"}, "http://localhost:11434")],
)
def test_in_python_the_environment_names_the_ollama_that_the_code_does_not(given: dict[str, Any], address: str) -> None:
    with open_engines(make_options(given), Settings({"OLLAMA_HOST": "box"})) as engines:
        assert engines.named("ollama").address == address
