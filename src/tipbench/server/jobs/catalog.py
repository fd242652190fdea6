"""Find a runner by name.

It is the module of that name in this package, or the module `remote` of the tipbench package of that name. Either has
a function `open_runner`.
"""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable
from tipbench.server.jobs.interface import Runner

LOCAL = "subprocess"  # the runner on this machine
_MODULES = ("tipbench.server.jobs.{}", "tipbench.{}.remote")


def open_runner(
    address: str, home: Path, settings: Settings, clock: Callable[[], float], new_id: Callable[[], str]
) -> Runner:
    """Open the runner that TIPBENCH_RUNNER names, for a server whose results are stored at `address`."""
    name = settings.get("TIPBENCH_RUNNER")
    runner: Runner = _opener(name)(address, home, settings, clock, new_id)
    return runner


def _opener(name: str) -> Callable[..., Runner]:
    for pattern in _MODULES if re.fullmatch(r"[a-z][a-z0-9_]*", name) else ():
        module = pattern.format(name)
        try:
            found = None if module == __name__ else getattr(import_module(module), "open_runner", None)
        except ModuleNotFoundError as error:
            if not error.name or not f"{module}.".startswith(f"{error.name}."):
                raise  # a dependency of the runner is missing
            found = None
        if callable(found):
            opener: Callable[..., Runner] = found
            return opener
    raise InvalidInput(f"TIPBENCH_RUNNER: there is no runner {printable(name, 60)!r}; unset it to run on this machine")
