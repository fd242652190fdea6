"""Templates of a suite: Jinja2, sandboxed because a suite may come from somebody else, and strict."""

import traceback
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=False,
    autoescape=False,
)
# A template must give the same text each time, or no cell would be found again.
del _ENVIRONMENT.filters["random"], _ENVIRONMENT.globals["lipsum"]
# What an expression in a template can raise; RuntimeError holds RecursionError, of a macro that calls itself.
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
    """What is wrong in a template, and in which line of it."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


class Template(Protocol):
    """A template; rendering it with the same values gives the same text. Both calls raise TemplateProblem."""

    source: str

    def __init__(self, source: str) -> None: ...

    def render(self, values: Mapping[str, Any]) -> str: ...


class TextTemplate:
    """A template that is compiled and rendered here: one of ours, or within a process with limits."""

    def __init__(self, source: str) -> None:
        self.source = source
        try:
            self._template = _ENVIRONMENT.from_string(source)
        except TemplateSyntaxError as error:
            raise TemplateProblem(error.lineno, f"template error: {error.message}") from None
        except (RecursionError, SyntaxError, ValueError) as error:  # nested too deep; a number of thousands of digits
            raise TemplateProblem(1, f"template error: {error}") from None

    def render(self, values: Mapping[str, Any]) -> str:
        try:
            return self._template.render(values).strip()
        except _RENDER_ERRORS as error:
            frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "<template>"]
            line = (frames[-1].lineno or 1) if frames else 1
            raise TemplateProblem(line, f"template error: {str(error) or type(error).__name__}") from None


# Markdown files with YAML between two `---` lines at the top.


class FrontMatter(NamedTuple):
    yaml: str
    yaml_line: int
    body: str
    body_line: int


def split_front_matter(text: str) -> FrontMatter | None:
    """The YAML part and the body with the lines where they start; None without a closed front matter."""
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != "---":
        return None
    for index, line in enumerate(lines[1:], start=1):
        if line.strip() == "---":
            return FrontMatter("".join(lines[1:index]), 2, "".join(lines[index + 1 :]), index + 2)
    return None
