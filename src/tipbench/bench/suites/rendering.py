"""Untrusted templates: a suite's templates are compiled and rendered in a child process with limits.

A few characters of template can loop for ever or fill the memory, even at compile time, when Jinja evaluates constants.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tipbench.bench.suites.templates import TemplateProblem, TextTemplate
from tipbench.core.limited_process import MAX_BYTES, LimitedProcess, OverLimit, serve

SECONDS = 2.0  # time limit for one template and one scenario
LONGEST_TEXT = 1_000_000  # characters
_TOO_MUCH = f"template error: it needs more than {SECONDS:g} s or {MAX_BYTES // 1_000_000} MB; make its loops shorter"
_process = LimitedProcess("tipbench.bench.suites.rendering", SECONDS)


class TemplateTooCostly(TemplateProblem):
    """A template exceeded the time or memory limit."""


class GuardedTemplate:
    """Like TextTemplate, but compiled and rendered in the process with limits."""

    def __init__(self, source: str) -> None:
        self.source = source
        _ask(source, None)

    def render(self, values: Mapping[str, Any]) -> str:
        return _ask(self.source, dict(values))


def start_rendering() -> None:
    """Start the process in which templates are rendered, while the caller still reads them."""
    _process.start()


def _ask(source: str, values: dict[str, Any] | None) -> str:
    """Render the template; without values, only compile it and return "". Raises TemplateProblem."""
    try:
        answer = _process.ask((source, values))
    except OverLimit:
        raise TemplateTooCostly(1, _TOO_MUCH) from None
    if "problem" in answer:
        raise TemplateProblem(answer["line"], answer["problem"])
    return str(answer["text"])


_compiled = lru_cache(64)(TextTemplate)


def _rendered(request: tuple[str, dict[str, Any] | None]) -> dict[str, Any]:
    source, values = request
    try:
        template = _compiled(source)
        text = "" if values is None else template.render(values)
    except TemplateProblem as problem:
        return {"line": problem.line, "problem": str(problem)[:500]}
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - a template can make Jinja raise anything
        return {"line": 1, "problem": f"template error: {error}"[:500]}
    if len(text) > LONGEST_TEXT:
        return {"line": 1, "problem": f"template error: its text is longer than {LONGEST_TEXT:,} characters"}
    return {"text": text}


if __name__ == "__main__":
    serve(_rendered)
