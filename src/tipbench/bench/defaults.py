"""Defaults of run options on this machine: from the files `tipbench.toml`, and addresses from the environment.

What commands and the admin server's form start from. The environment goes before the files, and of the files the
folder's goes before the user's and the system's. A DAG's runs have none of this: workers must not differ.
"""

import ipaddress
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from tipbench.bench.options import Options, make_options, option_fields
from tipbench.core.config_files import ConfigFile
from tipbench.core.errors import InvalidInput, Problems
from tipbench.core.settings import Settings
from tipbench.core.untrusted import shown, without_credentials

_PORT = 11434
_SCHEME_PORTS = {"http": 80, "https": 443}
_NETWORK = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]{0,253}))(?::([0-9]{1,5}))?")
_PATH = re.compile(r"(?:/[A-Za-z0-9._~%!$&'()*+;=:-]*)*")
_CREDENTIALS = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN")


class Default(NamedTuple):
    """An option's default on this machine, and where it comes from."""

    value: Any
    source: str  # "default", "environment NAME", or the path of a file


def machine_defaults(settings: Settings, keys: Collection[str]) -> dict[str, Any]:
    """Return the defaults of these options that a file or the environment sets.

    Raises InvalidInput for a file or variable that can't be used, and if credentials would be sent to an MLflow server
    that only the folder's file names. MLFLOW_TRACKING_URI, which may hold credentials, is left to who opens the store.
    """
    found = {key: default for key, default in sourced_defaults(settings, keys).items() if default.source != "default"}
    mlflow = found.get("mlflow_url")
    if mlflow and mlflow.source.startswith("environment"):
        del found["mlflow_url"]
    elif mlflow and is_of_folder(mlflow, settings):
        _refuse_to_send_credentials(mlflow, settings)
    return {key: default.value for key, default in found.items()}


def sourced_defaults(settings: Settings, keys: Collection[str] = Options.model_fields) -> dict[str, Default]:
    """Return the default of each of these options on this machine, and its source."""
    found = {field.key: Default(field.default, "default") for field in option_fields() if field.key in keys}
    for file in _files(settings):
        found |= {key: Default(value, file.path) for key, value in _options_in(file).items() if key in keys}
    for key, read in (("ollama_url", _environment_ollama_url), ("mlflow_url", _environment_mlflow_url)):
        if key in keys and (set_by := read(settings)):
            found[key] = set_by
    return found


def is_of_folder(default: Default, settings: Settings) -> bool:
    """Whether the value comes from the file of the working directory."""
    return bool(settings.folder_file and settings.folder_file.path == default.source)


def environment_ollama_url(settings: Settings) -> str | None:
    """Return the Ollama endpoint that TIPBENCH_OLLAMA_URL or else OLLAMA_HOST sets; None if neither does."""
    found = _environment_ollama_url(settings)
    return str(found.value) if found else None


def url_of_host(value: str) -> str:
    """Return the URL of an OLLAMA_HOST, read as Ollama's own client does; raise InvalidInput if it is none.

    Scheme and port are optional. An address to listen on, such as 0.0.0.0, means this machine.
    """
    given = value.strip().strip("\"'").strip()
    scheme, separator, rest = given.partition("://")
    if not separator:
        scheme, rest = "http", given
    network, slash, path = rest.partition("/")
    try:
        if scheme.lower() not in _SCHEME_PORTS or not _PATH.fullmatch(slash + path):
            raise ValueError("not an address")
        host, port = _host_and_port(network)
    except ValueError:
        raise InvalidInput(
            f"OLLAMA_HOST is {shown(without_credentials(value))}, which is not an address; use a form such as "
            "127.0.0.1:11434, gpu-box or https://gpu-box/ollama, or set TIPBENCH_OLLAMA_URL"
        ) from None
    port = port or (_SCHEME_PORTS[scheme.lower()] if separator else _PORT)
    return f"{scheme.lower()}://{host}:{port}{slash}{path}".rstrip("/")


def _host_and_port(network: str) -> tuple[str, int | None]:
    """Split `host:port`, each of which may be missing; raise ValueError if it is something else."""
    if network.count(":") > 1 and not network.startswith("["):  # an IPv6 address without a port
        network = f"[{network}]"
    match = _NETWORK.fullmatch(network)
    if match is None:
        raise ValueError("not a host and a port")
    literal, host, port = match.groups()
    if port and not 0 < int(port) < 65536:
        raise ValueError("no port to connect to")
    if literal is not None:
        address = ipaddress.IPv6Address(literal)
        return "[::1]" if address.is_unspecified else f"[{address}]", int(port or 0) or None
    return "127.0.0.1" if host in ("", "0.0.0.0") else host.lower(), int(port or 0) or None


def _environment_ollama_url(settings: Settings) -> Default | None:
    if given := settings.in_environment("TIPBENCH_OLLAMA_URL"):
        try:
            url = make_options({"ollama_url": given}).ollama_url
        except Problems as error:
            raise InvalidInput(f"TIPBENCH_OLLAMA_URL can't be used: {error.problems[0]}") from None
        return Default(url, "environment TIPBENCH_OLLAMA_URL")
    given = settings.in_environment("OLLAMA_HOST")
    return Default(url_of_host(given), "environment OLLAMA_HOST") if given.strip("\"' ") else None


def _environment_mlflow_url(settings: Settings) -> Default | None:
    given = settings.in_environment("MLFLOW_TRACKING_URI")
    return Default(given, "environment MLFLOW_TRACKING_URI") if given else None


def _files(settings: Settings) -> Iterator[ConfigFile]:
    yield from settings.files
    if settings.folder_file:
        yield settings.folder_file


def _options_in(file: ConfigFile) -> Mapping[str, Any]:
    """Return a file's options, validated; raise Problems with the file and every problem."""
    options = make_options(file.options, f"[options] in {file.path}")
    return {key: getattr(options, key) for key in file.options}


def _refuse_to_send_credentials(mlflow: Default, settings: Settings) -> None:
    """Raise InvalidInput if we would send the user's credentials to an address that came with a folder."""
    named = [name for name in _CREDENTIALS if settings.is_set(name)]
    if named and str(mlflow.value).startswith(("http://", "https://")):
        address = without_credentials(str(mlflow.value))
        raise InvalidInput(
            f"{mlflow.source} sets mlflow_url to {address}, and {named[0]} would be sent there; if you trust that "
            f"server, name it yourself: --mlflow-url {address}, or MLFLOW_TRACKING_URI={address}"
        )
