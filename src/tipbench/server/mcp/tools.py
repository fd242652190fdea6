"""What a tool is, the two sets of them that a connection can have, and what a tool answers when it fails."""

import logging
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from tipbench.bench.judge.judges.prompt import Delimiters, escape_markers
from tipbench.core.errors import InvalidInput, Problems, TipbenchError, is_about_input
from tipbench.core.untrusted import printable, shown
from tipbench.web.validation import problems_in

TEXT_LIMIT = 20_000  # characters of one text; a model can write a megabyte
SEEN_NOW = "You have seen results of this experiment now, so you get no items of it to judge."
_MAX_PROBLEMS = 20
_MAX_ERROR_CHARS = 1_000
_HIDDEN = "this is not available right now; try again in a minute, or tell whoever runs the bench, whose log says why"
_log = logging.getLogger(__name__)

Answer = dict[str, Any]


@dataclass(frozen=True)
class Tool:
    """A tool with its texts for agents; `run` takes the validated arguments, and may block."""

    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[Any], Answer]
    reads_only: bool = True
    schema: Mapping[str, Any] | None = None  # where `arguments` lets further keys through

    @property
    def input_schema(self) -> dict[str, Any]:
        schema = dict(self.schema or self.arguments.model_json_schema())
        schema.pop("title", None)
        schema.pop("description", None)  # the class's docstring, which is not for agents
        return schema


@dataclass(frozen=True)
class Face:
    """The tools of a connection. `is_blind`: whoever uses it must not learn which experiment, model or run is meant."""

    instructions: str
    tools: Sequence[Tool]
    is_blind: bool

    def call(self, name: str, arguments: Mapping[str, Any]) -> "Outcome":
        """Run a tool; every failure becomes a sentence that says what to do."""
        tool = next((one for one in self.tools if one.name == name), None)
        try:
            if tool is None:
                known = ", ".join(one.name for one in self.tools)
                raise InvalidInput(f"there is no tool {shown(name)} for you here; there are {known}")
            return Outcome(tool.run(_validated(tool, arguments)))
        except TipbenchError as error:
            return Outcome({"error": self._message(error)}, failed=True)
        except Exception as error:  # noqa: BLE001 - an agent can't act on a traceback; the log has it
            number = secrets.token_hex(4)
            _log.error("%s: the tool %s went wrong", number, printable(name, 60), exc_info=error)
            message = (
                f"something went wrong here; try again, and tell whoever runs the bench: its log has it as {number}"
            )
            return Outcome({"error": message}, failed=True)

    def _message(self, error: TipbenchError) -> str:
        if self.is_blind and not is_about_input(error):  # it may name an address, a run or a suite's file
            _log.warning("%s", printable(str(error)))
            return _HIDDEN
        if isinstance(error, Problems):
            listed = [f"- {printable(one, _MAX_ERROR_CHARS)}" for one in error.problems[:_MAX_PROBLEMS]]
            more = len(error.problems) - _MAX_PROBLEMS
            return "\n".join([error.headline, *listed, *([f"- and {more} more"] if more > 0 else [])])
        return printable(str(error), _MAX_ERROR_CHARS)


@dataclass(frozen=True)
class Outcome:
    """What a call of a tool came to."""

    answer: Answer
    failed: bool = False


def _validated(tool: Tool, arguments: Mapping[str, Any]) -> BaseModel:
    try:
        return tool.arguments.model_validate(dict(arguments))
    except ValidationError as error:
        found = problems_in([dict(one) for one in error.errors(include_url=False)])
        raise Problems(f"{tool.name} can't use these arguments:", found) from None


class SeenResults:
    """The experiments whose results or texts were read over a connection. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: set[str] = set()

    def add(self, experiment: str) -> None:
        with self._lock:
            self._names.add(experiment)

    def names(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._names)


def material(text: str, *parts: str, limit: int = TEXT_LIMIT) -> str:
    """Return a model's text between delimiters that its author can't have known, made printable and cut.

    `parts` say which text it is; one of them must be random, such as a batch's id.
    """
    cut = max(0, len(text) - limit)
    note = f"\n[{cut:,} more characters are left out]" if cut else ""
    return Delimiters.derive(*parts).wrap(escape_markers(text[:limit]) + note)
