"""The template environment of all pages: text from others is escaped, and its invisible characters are shown."""

from typing import Any, NamedTuple
from unicodedata import combining

from jinja2 import BaseLoader, ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tipbench.bench.compare import messages
from tipbench.bench.compare.html.drawing import shortened
from tipbench.core.identity import SHORT
from tipbench.core.text import plural, size, utc_minute
from tipbench.core.untrusted import printable
from tipbench.statistics.interval import Interval

_FITS, _FITS_LINES = 500, 5  # characters and line breaks that fit a text's box
TEXT_LIMIT = 4_000  # characters of one candidate, note or reason; a model can write a megabyte


class Cut(NamedTuple):
    """The beginning of a text, and the number of characters left out."""

    text: str
    left_out: int

    @property
    def may_scroll(self) -> bool:
        """Whether the text may not fit its box, which then must be reachable by keyboard."""
        return len(self.text) > _FITS or self.text.count("\n") > _FITS_LINES or any(map(combining, self.text))


def make_environment(*first: BaseLoader) -> Environment:
    """Return an environment for the report's templates and those of the loaders `first`; it escapes every value."""
    environment = Environment(
        loader=ChoiceLoader([*first, PackageLoader("tipbench.bench.compare", "html")]),
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # they are part of the package; looking at each file's time took a tenth of a page
    )
    environment.globals.update(words=messages, cut=cut, plural=plural, shortened=shortened)
    environment.filters.update(
        figure=messages.figure,
        percent=messages.percent,
        span=_span,
        day=_day,
        size=size,
        count=_count,
        digest=_digest,
    )
    return environment


def _finalize(value: Any) -> Any:
    """Make characters visible that would reorder or hide text."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def cut(text: str, limit: int = TEXT_LIMIT) -> Cut:
    return Cut(text[:limit], max(0, len(text) - limit))


def _span(interval: Interval | None, digits: int = 1) -> str:
    return "–" if interval is None else f"{interval[0]:.{digits}f} – {interval[1]:.{digits}f}"


def _day(milliseconds: int) -> str:
    try:
        return utc_minute(milliseconds)
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number / 1e9:.1f} B" if number >= 0.9995e9 else f"{number / 1e6:.0f} M"


def _digest(text: str) -> str:
    return text[:SHORT]
