"""Settings of the installation, in one table. No other module reads environment variables.

Whatever affects a run's results is an option (`options.py`); whatever depends on the machine is a setting. A variable
that is not set may be in a file `tipbench.toml`, of the user or of the system, under its name in lower case without
`TIPBENCH_`.
"""

import os
import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from tipbench.core.config_files import ConfigFile


class Setting(NamedTuple):
    name: str
    default: str
    help: str
    secret: bool = False


TABLE: tuple[Setting, ...] = (
    Setting("TIPBENCH_HOME", "", "Folder for tipbench's own data. Default: the user's data folder."),
    Setting("TIPBENCH_RUNNER", "subprocess", "Where runs happen: subprocess, or the name of another runner."),
    Setting("TIPBENCH_ENGINE_TIMEOUT", "600", "Timeout of one generation, in seconds."),
    Setting(
        "TIPBENCH_MEMORY_CHECK",
        "true",
        "false: load models even if they seem to need more than the free memory, for instance with a GPU.",
    ),
    Setting("TIPBENCH_OLLAMA_URL", "", "Ollama endpoint. --ollama-url overrides it, and it overrides OLLAMA_HOST."),
    Setting(
        "OLLAMA_HOST", "", "Ollama's own variable: a host, with or without scheme and port. 0.0.0.0 is this machine."
    ),
    Setting(
        "TIPBENCH_ALLOWED_OLLAMA_URLS",
        "",
        "Values of ollama_url that requests to 'tipbench serve' may use, comma-separated. Default: any.",
    ),
    Setting("TIPBENCH_OPENAI_URL", "http://localhost:8080/v1", "Base URL for openai/… models."),
    Setting("TIPBENCH_OPENAI_KEY", "", "API key for openai/… models, if the server requires one.", secret=True),
    Setting("TIPBENCH_ANCHORS", "", "File with a team's own anchors; their scores stay on this machine.", secret=True),
    Setting(
        "TIPBENCH_JUDGE_COMMAND",
        "",
        "Program for the judge 'command': it reads a batch on stdin and writes it, filled in, to stdout.",
    ),
    Setting(
        "TIPBENCH_JUDGE_AGENT",
        "",
        "Coding agent for the judge 'agent': claude-code, codex or gemini, or a command line that gets the "
        "instructions on stdin, or where it has {instructions} or {file}.",
    ),
    Setting(
        "TIPBENCH_JUDGE_ENV",
        "",
        "Extra environment variables to pass to the judge's program, comma-separated.",
    ),
    Setting("TIPBENCH_JUDGE_WEBHOOK", "", "URL of the judge 'webhook'; batches are posted there."),
    Setting("TIPBENCH_JUDGE_SECRET", "", "Secret for signing requests to the webhook and its answers.", secret=True),
    Setting(
        "TIPBENCH_CALLBACK_URL",
        "",
        "URL at which a webhook judge that answers later can reach 'tipbench serve'.",
    ),
    Setting("TIPBENCH_JUDGE_MODEL", "", "Model for the judge 'model', such as qwen2.5:7b or openai/judge."),
    Setting("TIPBENCH_JUDGE_TIMEOUT", "3600", "Timeout of a judge's program or webhook, in seconds."),
    Setting(
        "TIPBENCH_ADMIN_TOKEN",
        "",
        "Admin token of the server, at least 20 characters. Default: generated at the first start.",
        secret=True,
    ),
    Setting(
        "TIPBENCH_SERVING_KEY",
        "",
        "Key of the recommender service, at least 20 characters. Default: generated at the first start.",
        secret=True,
    ),
    Setting(
        "TIPBENCH_METRICS_TOKEN",
        "",
        "Token that may read /metrics of both servers and nothing else, at least 20 characters. Default: none.",
        secret=True,
    ),
    Setting("TIPBENCH_LOG_FORMAT", "text", "How both servers write their logs: text; or json, an object on each line."),
    Setting("TIPBENCH_STATE", "files", "Where the recommender keeps its users' states: files, or postgresql."),
    Setting(
        "TIPBENCH_POSTGRESQL_URL",
        "",
        "PostgreSQL database for user states, such as postgresql://user:password@host/name.",
        secret=True,
    ),
    Setting("TIPBENCH_SHADOWS", "", "Shadow policies to run, comma-separated, such as egreedy-v2-shadow."),
    Setting("TIPBENCH_REWARD_WINDOW", "604800", "Seconds after which a reward comes too late to learn from."),
    Setting(
        "TIPBENCH_MLFLOW_HOST",
        "",
        "Host header to send to the MLflow server, if it rejects the host name in the URL.",
    ),
    Setting(
        "TIPBENCH_ARTIFACT_TAGS",
        "fallback",
        "When candidates, prompt and raw answer are tags artifact:NAME: fallback, where files can't be stored; always.",
    ),
    Setting(
        "TIPBENCH_TRUSTED_PROXIES",
        "127.0.0.1",
        "With --behind-proxy: addresses or networks of the proxies that are believed, comma-separated.",
    ),
    Setting(
        "TIPBENCH_ALLOWED_HOSTS",
        "",
        "Host names that 'tipbench serve' answers to besides localhost and IP addresses, comma-separated.",
    ),
    Setting("MLFLOW_TRACKING_URI", "", "MLflow server, or sqlite:///FILE. --mlflow-url overrides it."),
    Setting("MLFLOW_TRACKING_USERNAME", "", "User name for the MLflow server.", secret=True),
    Setting("MLFLOW_TRACKING_PASSWORD", "", "Password for the MLflow server.", secret=True),
    Setting("MLFLOW_TRACKING_TOKEN", "", "Bearer token for the MLflow server.", secret=True),
    Setting("MLFLOW_TRACKING_INSECURE_TLS", "false", "true: don't verify the MLflow server's certificate."),
    Setting("MLFLOW_TRACKING_SERVER_CERT_PATH", "", "File of certificates to trust for the MLflow server."),
    Setting("MLFLOW_TRACKING_CLIENT_CERT_PATH", "", "File with the client certificate and key for the MLflow server."),
)
_UNBLINDING = ("TIPBENCH_HOME", "MLFLOW_TRACKING_URI")  # they lead to the key that tells which slot is what
# Credentials of the servers and their database, which a run does not need.
_SERVER_CREDENTIALS = (
    "TIPBENCH_ADMIN_TOKEN",
    "TIPBENCH_SERVING_KEY",
    "TIPBENCH_METRICS_TOKEN",
    "TIPBENCH_POSTGRESQL_URL",
)
_FOR_PROGRAMS = frozenset(  # variables that any program may need; those of proxies also occur in lower case
    (
        *("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    )
)
_SECRET_SUFFIXES = ("_TOKEN", "_PASSWORD", "_USERNAME", "_SECRET", "_KEY")  # of settings in other tables
_DAY_S = 86_400
_YEAR_S = 366 * _DAY_S
_ROWS = {setting.name: setting for setting in TABLE}


class Settings:
    """The table's values: in this process's environment, read on each access, else in the files `tipbench.toml`.

    An environment that is passed in stands alone: no file is read.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment
        self._reads_files = environment is None

    def get(self, name: str) -> str:
        return self.value(_ROWS[name])

    def value(self, setting: Setting) -> str:
        """Return the value of a setting, from this table or from the table of another package."""
        return self.in_environment(setting.name) or self._in_files.get(setting.name, "") or setting.default

    def is_set(self, name: str) -> bool:
        return bool(self.in_environment(name) or self._in_files.get(name))

    def in_environment(self, name: str) -> str:
        """Return the variable's value, whatever the files say; empty if it is not set."""
        return self._environment.get(name, "").strip()

    def source(self, name: str) -> str:
        """Return where a setting's value comes from: "environment", the path of a file, or "default"."""
        if self.in_environment(name):
            return "environment"
        if not self._in_files.get(name):  # an empty text in a file sets nothing
            return "default"
        from tipbench.core.config_files import file_key

        return [file.path for file in self.files if file_key(name) in file.settings][-1]

    @property
    def file_paths(self) -> tuple[str, str]:
        """The files that may hold settings: the system's, and the user's, which goes before it."""
        from tipbench.core import config_files

        folder = self._environment.get("XDG_CONFIG_HOME", "")
        if not folder.startswith("/"):  # by the XDG specification, a relative one does not count
            folder = os.path.expanduser("~/.config")  # noqa: PTH111
        return config_files.SYSTEM_FILE, f"{folder}/tipbench/{config_files.NAME}"

    @cached_property
    def files(self) -> tuple["ConfigFile", ...]:
        """The system's and the user's file, as far as they exist. Raises InvalidInput if one can't be used."""
        if not self._reads_files:
            return ()
        from tipbench.core.config_files import read_config_file

        found = [read_config_file(path, "machine") for path in self.file_paths]
        return tuple(file for file in found if file)

    @cached_property
    def folder_file(self) -> "ConfigFile | None":
        """The file of the working directory, which has no settings. Raises InvalidInput if it can't be used."""
        if not self._reads_files:
            return None
        from tipbench.core.config_files import NAME, read_config_file

        return read_config_file(f"./{NAME}", "folder")

    @cached_property
    def _in_files(self) -> dict[str, str]:
        if not self.files:
            return {}
        from tipbench.core.config_files import settings_in

        secret = {setting.name: setting.secret for setting in TABLE}
        return {name: value for file in self.files for name, value in settings_in(file, secret).items()}

    def _variables(self) -> dict[str, str]:
        """The environment, with the files' settings for variables that are not set."""
        unset = {name: value for name, value in self._in_files.items() if not self.in_environment(name)}
        return {**self._environment, **unset}

    def is_true(self, name: str) -> bool:
        return self.get(name).lower() in ("1", "true", "yes")

    @property
    def home(self) -> Path:
        """The folder of all our own files; absolute, so that changing the working directory loses nothing."""
        given = self.get("TIPBENCH_HOME")
        if given:
            return Path(os.path.expanduser(given)).absolute()  # noqa: PTH111 - Path.expanduser raises for ~nobody
        from platformdirs import user_data_path

        return user_data_path("tipbench", appauthor=False)

    @property
    def engine_timeout_s(self) -> float:
        return self._seconds("TIPBENCH_ENGINE_TIMEOUT")

    @property
    def judge_timeout_s(self) -> float:
        return self._seconds("TIPBENCH_JUDGE_TIMEOUT")

    @property
    def reward_window_s(self) -> float:
        return self._seconds("TIPBENCH_REWARD_WINDOW", limit=_YEAR_S)

    @property
    def log_format(self) -> Literal["text", "json"]:
        given = self.get("TIPBENCH_LOG_FORMAT")
        if given == "text":
            return "text"
        if given == "json":
            return "json"
        from tipbench.core.errors import InvalidInput

        raise InvalidInput(f"TIPBENCH_LOG_FORMAT must be text or json; it is {given!r}")

    def judge_environment(self) -> dict[str, str]:
        """Return the environment for a judge's program: what any program needs, and what TIPBENCH_JUDGE_ENV names."""
        named = {name.strip() for name in self.get("TIPBENCH_JUDGE_ENV").split(",")}
        return {
            name: value
            for name, value in self.environment_without_secrets().items()
            if name in named or name.upper() in _FOR_PROGRAMS or name.startswith("TIPBENCH_JUDGE_")
        }

    def environment_without_secrets(self) -> dict[str, str]:
        """Return the environment without our secrets, and without pointers to what judges must not see."""
        return {
            name: re.sub(r"://.*@", "://", value) if _is_ours(name) else value
            for name, value in self._variables().items()
            if name not in _UNBLINDING and not _is_secret(name)
        }

    def job_environment(self, home: Path) -> dict[str, str]:
        """Return the environment for a run that a server starts: the server's own, without the server's credentials and
        without secrets of packages that a run does not use."""
        variables = self._variables()
        hidden = {name for name in variables if _is_secret(name) and name not in _ROWS}.union(_SERVER_CREDENTIALS)
        environment = {name: value for name, value in variables.items() if name not in hidden}
        return {**environment, "TIPBENCH_HOME": str(home)}

    def with_values(self, values: Mapping[str, str]) -> "Settings":
        """Return these settings with other values for some variables."""
        return Settings({**self._variables(), **values})

    def without_prefix(self, prefix: str) -> "Settings":
        """Return these settings without the variables that have this prefix, such as those of another program."""
        return Settings({name: value for name, value in self._variables().items() if not name.startswith(prefix)})

    def _seconds(self, name: str, limit: int = _DAY_S) -> float:
        from tipbench.core.errors import InvalidInput

        given = self.get(name)
        try:
            seconds = float(given)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds < limit:
            raise InvalidInput(f"{name} must be seconds between 0 and {limit}; it is {given!r}")
        return seconds


def _is_ours(name: str) -> bool:
    return name in _ROWS or name.startswith("TIPBENCH_")


def _is_secret(name: str) -> bool:
    if name in _ROWS:
        return _ROWS[name].secret
    return _is_ours(name) and name.endswith(_SECRET_SUFFIXES)
