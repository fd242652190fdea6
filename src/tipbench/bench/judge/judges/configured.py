"""Judges that are configured by name in `judges.toml`, in TIPBENCH_HOME:

    [claude]
    run = "agent"
    agent = "claude-code --model haiku"
    timeout = 600
    env = "ANTHROPIC_API_KEY"

The keys are the settings TIPBENCH_JUDGE_…, in lower case without that prefix. Secrets stay in the environment.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from tipbench.core.config_files import load_toml
from tipbench.core.errors import InvalidInput, Problems
from tipbench.core.names import check_judge_name
from tipbench.core.settings import Settings
from tipbench.core.untrusted import shown

FILE = "judges.toml"
_PREFIX = "TIPBENCH_JUDGE_"
_KEYS = ("agent", "command", "webhook", "model", "timeout", "env")


class ConfiguredJudge(NamedTuple):
    """A judge of the catalog, with settings of its own."""

    kind: str
    settings: Mapping[str, str]


def configured_judges(settings: Settings, kinds: Collection[str]) -> dict[str, ConfiguredJudge]:
    """Return the judges in the file by name; none if there is no file. Raises Problems, listing every one."""
    path = settings.home / FILE
    try:
        data = load_toml(str(path))
    except FileNotFoundError:
        return {}
    problems: list[str] = []
    found = {name: _judge(name, given, kinds, problems) for name, given in data.items()}
    if problems:
        raise Problems(f"{path} can't be used:", problems)
    return found


def _judge(name: str, given: Any, kinds: Collection[str], problems: list[str]) -> ConfiguredJudge:
    try:
        check_judge_name(name)
    except InvalidInput as error:
        problems.append(str(error))
    if name in kinds:
        problems.append(f"[{name}]: is the name of a kind of judge; choose another")
    values = given if isinstance(given, dict) else {}
    kind = values.get("run")
    if kind not in kinds:
        problems.append(f"[{name}] run: must be one of {', '.join(kinds)} (given: {shown(kind)})")
    for key, value in values.items():
        if key != "run" and key not in _KEYS:
            problems.append(f"[{name}] {shown(key)}: unknown key; the keys are run, {', '.join(_KEYS)}")
        elif isinstance(value, bool) or not isinstance(value, str | int | float):
            problems.append(f"[{name}] {key}: must be a text or a number (given: {shown(value)})")
    return ConfiguredJudge(
        str(kind), {f"{_PREFIX}{key.upper()}": str(value) for key, value in values.items() if key in _KEYS}
    )
