"""Templates of suites: Jinja2, strict, and sandboxed because a suite may come from somebody else."""

import traceback
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from jinja2 import Environment

# What an expression in a template can raise, beside Jinja's own errors; RuntimeError includes RecursionError, from a
# macro that calls itself.
_RENDER_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)


@cache
def _environment() -> "Environment":
    """Return Jinja's environment; it is imported on first use, because a guarded template needs it in a child only."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    made = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=False,
        autoescape=False,
    )
    # Rendering must be deterministic, or no stored cell would be found again.
    del made.filters["random"], made.globals["lipsum"]
    return made


class TemplateProblem(Exception):
    """An error in a template, with its line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class Template(Protocol):
    """A template with deterministic rendering. Compiling it raises TemplateProblem."""

    source: str

    def __init__(self, source: str) -> None: ...

    def render_each(self, all_values: Iterable[Mapping[str, Any]]) -> Iterator[str | TemplateProblem]:
        """Render it with each of the values; yield the texts or what is wrong, in order."""
        ...


class TextTemplate:
    """A template compiled and rendered in this process: a trusted one, or in the rendering process with limits."""

    def __init__(self, source: str) -> None:
        from jinja2 import TemplateSyntaxError

        self.source = source
        try:
            self._template = _environment().from_string(source)
        except TemplateSyntaxError as error:
            raise TemplateProblem(error.lineno, f"template error: {error.message}") from None
        except (RecursionError, SyntaxError, ValueError) as error:  # nested too deeply; a number of thousands of digits
            raise TemplateProblem(1, f"template error: {error}") from None

    def render_each(self, all_values: Iterable[Mapping[str, Any]]) -> Iterator[str | TemplateProblem]:
        for values in all_values:
            try:
                yield self.render(values)
            except TemplateProblem as problem:
                yield problem

    def render(self, values: Mapping[str, Any]) -> str:
        from jinja2 import TemplateError

        try:
            return self._template.render(values).strip()
        except (TemplateError, *_RENDER_ERRORS) as error:
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
            line = (frames[-1].lineno or 1) if frames else 1
            raise TemplateProblem(line, f"template error: {str(error) or type(error).__name__}") from None
