"""Untrusted templates: a suite's templates are compiled and rendered in a child process with limits.

A few characters of template can loop for ever or fill the memory, even at compile time, when Jinja evaluates constants.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

from tipbench.bench.suites.templates import TemplateProblem, TextTemplate
from tipbench.core.limited_process import MAX_BYTES, LimitedProcess, OverLimit, serve

SECONDS = 2.0  # time limit for one template and one scenario
LONGEST_TEXT = 1_000_000  # characters
_AT_ONCE = 32  # texts that the process renders before it answers
_TOO_MUCH = f"template error: it needs more than {SECONDS:g} s or {MAX_BYTES // 1_000_000} MB; make its loops shorter"
_process = LimitedProcess("tipbench.bench.suites.rendering", SECONDS)


class TemplateTooCostly(TemplateProblem):
    """A template exceeded the time or memory limit."""


class GuardedTemplate:
    """Like TextTemplate, but compiled and rendered in the process with limits."""

    def __init__(self, source: str) -> None:
        self.source = source
        for problem in _ask_each([(source, None)]):
            if isinstance(problem, TemplateProblem):
                raise problem

    def render_each(self, all_values: Iterable[Mapping[str, Any]]) -> Iterator[str | TemplateProblem]:
        requests = ((self.source, dict(values)) for values in all_values)
        while some := list(islice(requests, _AT_ONCE)):
            yield from _ask_each(some)


def start_rendering() -> None:
    """Start the process in which templates are rendered, while the caller still reads them."""
    _process.start()


_Request = tuple[str, dict[str, Any] | None]  # a template and its values; without values, it is only compiled


def _ask_each(requests: Sequence[_Request]) -> Iterator[str | TemplateProblem]:
    """Yield each request's text, or what is wrong with its template."""
    try:
        answers = _process.ask_all(requests)
    except OverLimit:
        if len(requests) > 1:
            for request in requests:  # to learn which one it was
                yield from _ask_each([request])
        else:
            yield TemplateTooCostly(1, _TOO_MUCH)
        return
    for answer in answers:
        yield TemplateProblem(answer["line"], answer["problem"]) if "problem" in answer else str(answer["text"])


_compiled = lru_cache(64)(TextTemplate)


def _rendered(request: _Request) -> dict[str, Any]:
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
