"""The files `tipbench.toml`: where they are, who may have written them, and their two tables.

    [options]                        # defaults of run options, with the same keys as the flags
    models = "qwen2.5:0.5b,gemma3:1b"
    [settings]                       # settings of the installation; not in a folder's file
    judge_agent = "claude-code"

A folder's file may come with somebody else's repository, so it can't say what to run or where secrets are.
"""

import os
import stat
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from tipbench.core.errors import InvalidInput, Problems
from tipbench.core.files import open_regular
from tipbench.core.untrusted import shown

NAME = "tipbench.toml"
SYSTEM_FILE = f"/etc/tipbench/{NAME}"
_MAX_BYTES = 1_000_000
_TABLES = ("options", "settings")
# Variables that are addresses: in a file they are options, so that a value has one place.
_OPTIONS = {"MLFLOW_TRACKING_URI": "mlflow_url", "TIPBENCH_OLLAMA_URL": "ollama_url", "OLLAMA_HOST": "ollama_url"}


class ConfigFile(NamedTuple):
    """A file that was read. Its keys are not checked yet."""

    path: str
    options: Mapping[str, Any]
    settings: Mapping[str, Any]
    is_public: bool  # every user of the machine can read it


def read_config_file(path: str, scope: Literal["machine", "folder"]) -> ConfigFile | None:
    """Read a file of this machine (the system's or the user's) or of a folder; None if there is none.

    Raises InvalidInput if it can't be read, if somebody else may have written it, or if it has other tables.
    """
    try:
        data, found = _load(path)
    except FileNotFoundError:
        return None
    _check_owner(path, found, scope)
    problems = [_unknown_table(name) for name in data if name not in _TABLES]
    problems += [
        f"{name}: must be a table, [{name}] (given: {shown(data[name])})"
        for name in _TABLES
        if not isinstance(data.get(name, {}), dict)
    ]
    if problems:
        raise Problems(f"{path} can't be used:", problems)
    if scope == "folder" and data.get("settings"):
        raise InvalidInput(
            f"{path} sets {', '.join(map(str, data['settings']))} under [settings], which a folder's file may not: it "
            f"could come with somebody else's files; move that to ~/.config/tipbench/{NAME}, or to the environment"
        )
    return ConfigFile(path, data.get("options", {}), data.get("settings", {}), bool(found.st_mode & stat.S_IROTH))


def file_key(name: str) -> str:
    """Return a setting's key in a file: TIPBENCH_JUDGE_AGENT is judge_agent."""
    return name.removeprefix("TIPBENCH_").lower()


def settings_in(file: ConfigFile, secret: Mapping[str, bool]) -> dict[str, str]:
    """Return a file's settings by their variables; `secret` has all settings, and which of them are secret.

    Raises Problems, listing every one, but no value: it may be a secret.
    """
    names = {file_key(name): name for name in secret if name not in _OPTIONS}
    problems = []
    for key, value in file.settings.items():
        option = _OPTIONS.get(key.upper()) or _OPTIONS.get(f"TIPBENCH_{key.upper()}")
        if option:
            problems.append(f"{key}: is an option in a file; write {option} under [options]")
        elif key not in names:
            problems.append(f"{shown(key)[1:-1]}: unknown key; {nearest_key(file_key(key.upper()), tuple(names))}")
        elif not isinstance(value, str | bool | int | float):
            problems.append(f"{key}: must be a text, a number, true or false")
        elif secret[names[key]] and value and file.is_public:
            problems.append(
                f"{key}: is a secret, and every user of this machine can read the file; run 'chmod o-r {file.path}'"
            )
    if problems:
        raise Problems(f"[settings] in {file.path} can't be used:", problems)
    return {
        names[key]: str(value).lower() if isinstance(value, bool) else str(value).strip()
        for key, value in file.settings.items()
    }


def load_toml(path: str) -> dict[str, Any]:
    """Read a TOML file. Raises FileNotFoundError, and InvalidInput with the line if it is not valid TOML."""
    return _load(path)[0]


def nearest_key(key: str, known: tuple[str, ...]) -> str:
    """Return what to do about an unknown key: the known one that it resembles, else all of them."""
    from difflib import get_close_matches

    matches = get_close_matches(key, known, n=1)
    return f"did you mean {matches[0]}?" if matches else f"the keys are {', '.join(known)}"


def _load(path: str) -> tuple[dict[str, Any], os.stat_result]:
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            content, found = file.read(_MAX_BYTES + 1), os.fstat(file.fileno())
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise InvalidInput(f"{path} can't be read: {error.strerror or error}") from None
    if len(content) > _MAX_BYTES:
        raise InvalidInput(f"{path} can't be read: it is larger than {_MAX_BYTES // 1_000_000} MB")
    import tomllib

    try:
        return tomllib.loads(content.decode("utf-8-sig")), found
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} can't be read: it is not UTF-8 text") from None
    except RecursionError:
        raise InvalidInput(f"{path} can't be read: it is nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, which names the line, or a number that is too long
        raise InvalidInput(f"{path} can't be read: {shown(str(error), 200)[1:-1]}") from None


def _check_owner(path: str, found: os.stat_result, scope: Literal["machine", "folder"]) -> None:
    """Raise InvalidInput if somebody may have written the file who must not decide what tipbench does."""
    trusted = {0, os.getuid()}
    if scope == "folder":  # whoever owns the folder owns all that is done in it; /tmp belongs to root
        trusted.add(os.stat(os.path.dirname(path)).st_uid)  # noqa: PTH116, PTH120
    if found.st_uid not in trusted:
        raise InvalidInput(
            f"{path} belongs to another user (id {found.st_uid}), so it was not read; make it your own ('chown'), or "
            "remove it"
        )
    others = stat.S_IWOTH | (stat.S_IWGRP if scope == "machine" else 0)
    if found.st_mode & others:
        raise InvalidInput(f"{path} can be changed by other users, so it was not read; run 'chmod go-w {path}'")


def _unknown_table(name: str) -> str:
    return f"{shown(name)[1:-1]}: unknown table; {nearest_key(name, _TABLES).replace('keys', 'tables')}"
