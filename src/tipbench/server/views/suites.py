"""Suites that this server knows by name: built-in ones, and folders that an admin registered."""

import difflib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tipbench.bench.judge.proposals import Proposals
from tipbench.bench.suites.anchors import accept_anchors, without_anchors
from tipbench.bench.suites.load import built_in_suites, load_suite, register_suite
from tipbench.bench.suites.registered import registered_suites, remove_registered
from tipbench.bench.suites.suite import Prompt, Suite
from tipbench.core.errors import InvalidInput, NotFound, Problems
from tipbench.server.views.store_provider import StoreProvider

_SHOWN_PROBLEMS = 3  # of a suite in the list
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SuiteLine:
    """One suite in the list."""

    name: str
    folder: Path
    is_built_in: bool
    suite: Suite | None  # None if it can't be used
    problem: str


@dataclass(frozen=True)
class SuiteView:
    """One suite with what belongs to it on this server."""

    suite: Suite
    warning: str  # that nobody checks its judges; empty if somebody does
    experiments: Sequence[str]  # of this suite, newest first


@dataclass(frozen=True)
class DiffLine:
    """One line of two texts held against each other."""

    kind: Literal["same", "removed", "added"]
    text: str


class Suites:
    """Lists, shows, registers and completes suites."""

    def __init__(self, stores: StoreProvider) -> None:
        self._stores = stores

    def lines(self) -> list[SuiteLine]:
        """Return all suites; one that can't be used comes with its problem."""
        known = {**built_in_suites(), **registered_suites(self._stores.settings)}
        return [self._line(name, folder) for name, folder in known.items()]

    def get(self, name: str) -> SuiteView:
        """Return a suite; raise NotFound if no such suite is known, SuiteError with every problem if it is broken."""
        settings = self._stores.settings
        if name not in {*built_in_suites(), *registered_suites(settings)}:
            raise NotFound(f"no suite '{name}' is known here; an admin can register its folder")
        suite = load_suite(name, settings)
        return SuiteView(suite, without_anchors(suite, settings), self._experiments(name))

    def register(self, folder: str) -> Suite:
        """Register the suite in a folder of this machine. Raises InvalidInput, or SuiteError with every problem."""
        if not Path(folder).is_absolute():
            raise InvalidInput(f"'{folder}' must be a whole path on the server's machine, such as /srv/suites/commits")
        return register_suite(folder, self._stores.settings)[0]

    def unregister(self, name: str) -> None:
        remove_registered(name, self._stores.settings)

    def proposals(self, name: str, experiment: str, tolerance: int = 0) -> Proposals:
        """Propose anchors from what judges agree on in an experiment of this suite."""
        return self._stores.bench(experiment, suite=self.get(name).suite.name).propose_anchors(tolerance)

    def accept(self, name: str, experiment: str, anchor: str, tolerance: int = 0) -> int:
        """Add a proposed anchor to the suite's file; return how many it has now.

        The proposal is made again, so that nothing but what judges agreed on can be written.
        """
        found = self.proposals(name, experiment, tolerance)
        if any(one.id == anchor for one in found.suite.anchors):
            return len(found.suite.anchors)
        chosen = [entry for entry in found.usable if entry.id == anchor]
        if not chosen:
            raise InvalidInput(f"'{anchor}' is not proposed any more, because scores have changed; load the page again")
        return len(found.suite.anchors) + len(accept_anchors(found.suite, chosen, self._stores.settings, _log.info))

    def _line(self, name: str, folder: Path) -> SuiteLine:
        is_built_in = name in built_in_suites()
        try:
            return SuiteLine(name, folder, is_built_in, load_suite(name, self._stores.settings), "")
        except InvalidInput as error:
            problems = error.problems if isinstance(error, Problems) else (str(error),)
            return SuiteLine(name, folder, is_built_in, None, "; ".join(problems[:_SHOWN_PROBLEMS]))

    def _experiments(self, name: str) -> list[str]:
        store = self._stores.store_if_any()
        found = store.experiments("") if store else []
        return [one.name for one in reversed(found) if one.tags.get("tipbench.suite") == name]


def prompt_text(prompt: Prompt) -> str:
    """Return a prompt as one text: its system message, if it has one, and the message to the model."""
    system = f"[system]\n{prompt.system.source.strip()}\n\n[user]\n" if prompt.system else ""
    return f"{system}{prompt.user.source.strip()}"


def prompt_diff(one: Prompt, other: Prompt) -> list[DiffLine]:
    """Return the lines of two prompts: those of both, those of the first alone, those of the second alone."""
    lines = difflib.ndiff(prompt_text(one).splitlines(), prompt_text(other).splitlines())
    kinds: dict[str, Literal["same", "removed", "added"]] = {"  ": "same", "- ": "removed", "+ ": "added"}
    return [DiffLine(kinds[line[:2]], line[2:]) for line in lines if line[:2] in kinds]
