"""The run options as one schema, used by the command line, config files, the API and the DAG's configuration."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tipbench.core.config_files import nearest_key
from tipbench.core.errors import InvalidInput, Problems
from tipbench.core.files import read_text
from tipbench.core.untrusted import printable, shown, storable, without_credentials

MAX_TIPS = 50
MAX_CONCURRENCY = 256
_LOCAL_HOSTS = ("localhost", "::1")
_PORTS = {"http": 80, "https": 443}


class Options(BaseModel):
    """What a run is asked to do. Field names are the keys everywhere; flags write them with dashes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    models: str = Field(
        "qwen2.5:0.5b,qwen2.5:1.5b,gemma3:1b,llama3.2:3b",
        description="Models, comma-separated: a bare name is an Ollama tag; embedded/… and openai/… name "
        "the other engines.",
    )
    prompts: str = Field("v1,v2-mentor,v3-few-shot", description="Prompt versions, comma-separated.")
    n_tips: int = Field(5, ge=1, le=MAX_TIPS, description="Candidates to generate per scenario.")
    n_scenarios: int = Field(
        0,
        ge=0,
        description="Use only N scenarios, taken in turn from the suite's clusters, such as personas (0 = all).",
    )
    temperature: float = Field(0.7, ge=0, le=5, description="Generation temperature.")
    experiment: str = Field("tip-bench-auto", min_length=1, max_length=200, description="MLflow experiment name.")
    max_model_b: float = Field(
        4.0, ge=0, description="Refuse models larger than this, in billions of parameters (0 = no limit)."
    )
    ollama_url: str = Field(
        "http://localhost:11434",
        description="Ollama endpoint. Several, comma-separated, if a runner distributes models over them. "
        "$TIPBENCH_OLLAMA_URL, else $OLLAMA_HOST, set another default.",
    )
    mlflow_url: str | None = Field(
        None,
        description="MLflow server, or sqlite:///FILE. Default: $MLFLOW_TRACKING_URI, else "
        "http://localhost:5000 if MLflow answers there, else tipbench's own database.",
    )
    diversity: bool = Field(False, description="Ask for candidates that differ from each other.")
    suite: str = Field("tip", description="A suite's name, built-in or registered, or the folder of your own.")
    repeats: int = Field(1, ge=1, le=1000, description="How often each cell is generated, each time with its own seed.")
    seed: int = Field(0, ge=0, lt=2**31, description="Random seed: the same seed gives the same requests.")
    unload: Literal["call", "model"] = Field(
        "call", description="When Ollama unloads a model: after every call, or after the model's last cell."
    )
    concurrency: int | None = Field(
        None,
        ge=1,
        le=MAX_CONCURRENCY,
        description="Concurrent requests. Default: 1 for Ollama and embedded, 16 for openai.",
    )
    max_tokens: int | None = Field(
        None, ge=1, le=32_768, description="Maximum length of an answer in tokens. Default: set by the suite."
    )
    judge: str | None = Field(
        None, description="Automatic judge: lexical, agent, command, webhook or model. Default: export for a person."
    )

    @field_validator("models", "prompts", mode="before")
    @classmethod
    def _join_list(cls, value: Any) -> Any:
        """Accept a list of names, as config files may give it."""
        is_list = isinstance(value, list) and all(isinstance(name, str) for name in value)
        return ",".join(value) if is_list else value

    @field_validator("models", "prompts")
    @classmethod
    def _check_names(cls, value: str) -> str:
        names = split_names(value)
        if not names:
            raise ValueError("is empty; give at least one")
        if storable(value).escaped:
            raise ValueError("has a character that can't be stored: a NUL, or bytes that are not UTF-8")
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"names {', '.join(doubled)} twice")
        return value

    @field_validator("experiment")
    @classmethod
    def _check_experiment(cls, value: str) -> str:
        if value != printable(value, limit=1000) or value != value.strip():
            raise ValueError("has characters that can't be printed, or spaces around it")
        return value

    @field_validator("ollama_url")
    @classmethod
    def _check_ollama_url(cls, value: str) -> str:
        urls = [url.rstrip("/") for url in split_names(value)]
        if not urls or not all(url.startswith(("http://", "https://")) for url in urls):
            raise ValueError("must start with http:// or https://")
        if len({endpoint(url) for url in urls}) < len(urls):
            raise ValueError("names one endpoint twice")
        return ",".join(urls)

    def with_suite_defaults(self, prefix: str, prompts: Sequence[str], one_candidate: bool) -> "Options":
        """Return these options with a suite's defaults for what was not given: its prompts and an experiment name."""
        defaults: dict[str, Any] = {"prompts": ",".join(prompts), "experiment": f"{prefix}auto"}
        updates = {key: value for key, value in defaults.items() if key not in self.model_fields_set}
        if one_candidate:
            updates["n_tips"] = 1
        return self.model_copy(update=updates)

    @property
    def model_names(self) -> tuple[str, ...]:
        return split_names(self.models)

    @property
    def ollama_urls(self) -> tuple[str, ...]:
        return split_names(self.ollama_url)

    @property
    def prompt_names(self) -> tuple[str, ...]:
        return split_names(self.prompts)


class OptionField(NamedTuple):
    """One option, as needed to build a flag, a form field or a parameter from it."""

    key: str
    flag: str
    type: type
    default: Any
    help: str


def split_names(value: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in value.split(",") if name.strip())


def endpoint(url: str) -> str:
    """Normalise a URL to one spelling per endpoint: a machine with two names is still one machine with one memory."""
    plain = without_credentials(url)
    try:
        parts = urlsplit(plain)
        host, port = (parts.hostname or "").lower(), parts.port or _PORTS.get(parts.scheme.lower())
    except ValueError:  # not a valid address; reported when it is used
        return plain
    shown_host = "127.0.0.1" if host in _LOCAL_HOSTS else f"[{host}]" if ":" in host else host
    return f"{parts.scheme.lower()}://{shown_host}:{port}{parts.path}"


def option_fields() -> Iterator[OptionField]:
    for key, info in Options.model_fields.items():
        kind = next((t for t in (bool, int, float, str) if info.annotation in (t, t | None)), str)
        yield OptionField(key, "--" + key.replace("_", "-"), kind, info.default, info.description or "")


def make_options(given: Mapping[str, Any], source: str = "the options") -> Options:
    """Validate plain data as options; raise Problems with every problem, by key and value."""
    try:
        return Options.model_validate(dict(given))
    except ValidationError as error:
        raise Problems(f"{source} can't be used:", [_explain(e) for e in error.errors()]) from None


def read_config(path: Path) -> dict[str, Any]:
    """Read a YAML or JSON config file; only its structure is checked, not its keys and values.

    Raises InvalidInput if it can't be read or is not a mapping.
    """
    from tipbench.core.located_yaml import load_located

    try:
        located = load_located(read_text(path))
    except OSError as error:
        raise InvalidInput(f"config file {path} can't be read: {error.strerror}") from None
    if located.problems:
        problems = [f"line {line}: {message}" for line, message in located.problems]
        raise Problems(f"config file {path} can't be used:", problems)
    if located.data is None:
        return {}
    if not isinstance(located.data, dict):
        raise InvalidInput(f"config file {path} must contain keys and values, such as 'n_tips: 5', not a list or text")
    return located.data


def _explain(error: Any) -> str:
    key = printable(".".join(str(part) for part in error["loc"]), 80) or "options"
    if error["type"] == "extra_forbidden":
        return f"{key}: unknown key; {nearest_key(key, tuple(Options.model_fields))}"
    given = error.get("input")
    if key.endswith("_url"):  # may hold a password
        given = without_credentials(given) if isinstance(given, str) else "…"
    message = printable(str(error["msg"]).removeprefix("Value error, "))
    return f"{key}: {message[0].lower() + message[1:]} (given: {shown(given, 80)})"
