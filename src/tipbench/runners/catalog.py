"""Names to runners: a runner is the module of that name here, and offers `open_runner`."""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable
from tipbench.runners.interface import Runner

_PACKAGE = "tipbench.runners"


def open_runner(
    address: str, home: Path, settings: Settings, clock: Callable[[], float], new_id: Callable[[], str]
) -> Runner:
    """The one in TIPBENCH_RUNNER, for a server whose results are at the address."""
    name = settings.get("TIPBENCH_RUNNER")
    runner: Runner = _opener(name)(address, home, settings, clock, new_id)
    return runner


def _opener(name: str) -> Callable[..., Runner]:
    module = f"{_PACKAGE}.{name}"
    if re.fullmatch(r"[a-z][a-z0-9_]*", name) and module != __name__:
        try:
            found = getattr(import_module(module), "open_runner", None)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            found = None
        if callable(found):
            opener: Callable[..., Runner] = found
            return opener
    raise InvalidInput(
        f"TIPBENCH_RUNNER: there is no runner {printable(name, 60)!r}; leave it out, and runs happen on this machine"
    )
