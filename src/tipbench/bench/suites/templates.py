"""Templates of suites: Jinja2, strict, and sandboxed because a suite may come from somebody else."""

import traceback
from collections.abc import Mapping
from typing import Any, Protocol

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=False,
    autoescape=False,
)
# Rendering must be deterministic, or no stored cell would be found again.
del _ENVIRONMENT.filters["random"], _ENVIRONMENT.globals["lipsum"]
# What an expression in a template can raise; RuntimeError includes RecursionError, from a macro that calls itself.
_RENDER_ERRORS = (
    TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)


class TemplateProblem(Exception):
    """An error in a template, with its line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class Template(Protocol):
    """A template with deterministic rendering. Compiling and rendering raise TemplateProblem."""

    source: str

    def __init__(self, source: str) -> None: ...

    def render(self, values: Mapping[str, Any]) -> str: ...


class TextTemplate:
    """A template compiled and rendered in this process: a trusted one, or in the rendering process with limits."""

    def __init__(self, source: str) -> None:
        self.source = source
        try:
            self._template = _ENVIRONMENT.from_string(source)
        except TemplateSyntaxError as error:
            raise TemplateProblem(error.lineno, f"template error: {error.message}") from None
        except (RecursionError, SyntaxError, ValueError) as error:  # nested too deeply; a number of thousands of digits
            raise TemplateProblem(1, f"template error: {error}") from None

    def render(self, values: Mapping[str, Any]) -> str:
        try:
            return self._template.render(values).strip()
        except _RENDER_ERRORS as error:
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
            line = (frames[-1].lineno or 1) if frames else 1
            raise TemplateProblem(line, f"template error: {str(error) or type(error).__name__}") from None
