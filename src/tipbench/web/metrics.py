"""Metrics for Prometheus, at /metrics: what a server counts over all its processes, and what it looks up when asked.

Every label is bounded: routes are templates, and what comes from requests goes through `Metrics.label` or
`Metrics.member`.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from fastapi import APIRouter
from starlette.responses import Response

from tipbench.core.untrusted import printable
from tipbench.core.version import __version__
from tipbench.web.counters import SharedCounters

METRICS = "/metrics"
OTHER = "other"  # in place of whatever is beyond a bound
UNMATCHED = "unmatched"  # the route of a request that was refused before the router, or that no route is for
_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MAX_LABEL_CHARS = 128
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
Labels = tuple[str, ...]


class Family(NamedTuple):
    """A metric: its name, what it says, and the names of its labels."""

    name: str
    help: str
    labels: Labels
    kind: Literal["counter", "gauge", "histogram"] = "counter"


Gauge = tuple[Family, Mapping[Labels, float]]
_BUILD = Family("tipbench_build_info", "The version that runs; always 1.", ("version", "server"), "gauge")
_REQUESTS = Family(
    "tipbench_http_requests_total", "Requests that were answered.", ("server", "method", "route", "status")
)
_DURATIONS = Family(
    "tipbench_http_request_duration_seconds",
    "Seconds from a request to the beginning of its answer.",
    ("server", "method", "route"),
    "histogram",
)
_UNHANDLED = Family("tipbench_unhandled_errors_total", "Errors that nothing in the server expects.", ("server",))
_STORE_DURATIONS = Family(
    "tipbench_store_duration_seconds", "Seconds that a store took.", ("store", "operation"), "histogram"
)
_STORE_ERRORS = Family("tipbench_store_errors_total", "Requests that a store could not carry out.", ("store",))


class Metrics:
    """What one server counts: requests, errors, stores, and whatever `families` are for.

    `store` is the name of the server's own store.
    """

    def __init__(
        self,
        server: Literal["serve", "recommend"],
        store: str,
        families: Iterable[Family] = (),
        counters: SharedCounters | None = None,
    ) -> None:
        self._server = server
        self._store = store
        self._families = (_REQUESTS, _DURATIONS, _UNHANDLED, _STORE_DURATIONS, _STORE_ERRORS, *families)
        self._counters = counters or SharedCounters()
        self.count(_UNHANDLED, server, amount=0)  # so that there is something to compare the first one with
        self.count_store_error(store, amount=0)

    def count(self, family: Family, *labels: str, amount: float = 1.0) -> None:
        self._counters.add((family.name, *labels), amount)

    def observe(self, family: Family, *labels: str, seconds: float) -> None:
        self._counters.observe(
            (family.name, *labels), 2 + len(_SECONDS), 1 + bisect_left(_SECONDS, seconds), max(0.0, seconds)
        )

    def count_request(self, method: str, route: str, status: str, seconds: float) -> None:
        method = method if method in _METHODS else OTHER
        self.count(_REQUESTS, self._server, method, route, status)
        self.observe(_DURATIONS, self._server, method, route, seconds=seconds)

    def count_unhandled_error(self) -> None:
        self.count(_UNHANDLED, self._server)

    def count_store_error(self, store: str = "", amount: float = 1.0) -> None:
        """Count an error of this store, by default the server's own."""
        self.count(_STORE_ERRORS, store or self._store, amount=amount)

    def observe_store(self, operation: str, seconds: float) -> None:
        self.observe(_STORE_DURATIONS, self._store, operation, seconds=seconds)

    def member(self, group: str, name: str, limit: int) -> str:
        """Return untrusted text as a label: as it is if it is one of the group's first so many, else `other`."""
        text = label(name)
        return text if self._counters.is_member(group, text, limit) else OTHER

    def text(self, gauges: Iterable[Gauge] = ()) -> str:
        """Return all metrics in Prometheus's text format."""
        sums = self._counters.sums()
        lines = _lines(_BUILD, {(__version__, self._server): [1.0]})
        for family in self._families:
            found = {key[1:]: numbers for key, numbers in sums.items() if key[0] == family.name}
            lines += _lines(family, found)
        for family, values in gauges:
            lines += _lines(family, {labels: [value] for labels, value in values.items()})
        return "\n".join((*lines, ""))


def label(text: str) -> str:
    """Return untrusted text as a label's value: on one line, limited in length."""
    return printable(text, _MAX_LABEL_CHARS)


def metrics_router(metrics: Metrics, gauges: Callable[[], Iterable[Gauge]] = tuple) -> APIRouter:
    """`gauges` is called whenever somebody asks."""
    api = APIRouter(include_in_schema=False)

    @api.get(METRICS)
    def show() -> Response:
        return Response(metrics.text(gauges()), media_type=_MEDIA_TYPE)

    return api


def _lines(family: Family, values: Mapping[Labels, list[float]]) -> list[str]:
    """Return the lines of a metric; none if there are no values."""
    lines = [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"] if values else []
    for labels, numbers in sorted(values.items()):
        pairs = list(zip(family.labels, labels, strict=True))
        if family.kind == "histogram":
            lines += _histogram_lines(family.name, pairs, numbers)
        else:
            lines.append(_line(family.name, pairs, numbers[0]))
    return lines


def _histogram_lines(name: str, pairs: list[tuple[str, str]], numbers: list[float]) -> Iterator[str]:
    total, *buckets = numbers
    count = 0.0
    for limit, number in zip((*map(_number, _SECONDS), "+Inf"), buckets, strict=True):
        count += number
        yield _line(f"{name}_bucket", [*pairs, ("le", limit)], count)
    yield _line(f"{name}_sum", pairs, total)
    yield _line(f"{name}_count", pairs, count)


def _line(name: str, pairs: Iterable[tuple[str, str]], value: float) -> str:
    labels = ",".join(f'{key}="{_escaped(text)}"' for key, text in pairs)
    return f"{name}{{{labels}}} {_number(value)}" if labels else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))
