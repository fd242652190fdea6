"""The report's plots as inline SVG, each for wide and for narrow pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tipbench.bench.compare.html.drawing import (
    Axis,
    Drawing,
    even_steps,
    log_steps,
    padded_range,
    shortened,
    steps_with_ends,
)
from tipbench.statistics.interval import Interval

WIDE, NARROW = 960.0, 340.0  # in SVG units; one is a CSS pixel where the page is wide enough
_EDGE = 12.0
_HEADING = 30.0  # height of a line that holds a heading only
_LETTER = 8.0  # approximate width of a bold letter
_Box = tuple[float, float, float, float]  # left, top, right, bottom
_AXIS = 26.0  # height of the axis labels below a plot


@dataclass(frozen=True)
class Bar:
    """One line of an interval plot."""

    label: str
    mean: float | None  # None: not scored
    interval: Interval | None
    possible: Interval | None  # where the mean may lie given what is missing; None: nothing is missing
    emphasis: bool  # drawn in colour, filled and in bold
    remark: str = ""


@dataclass(frozen=True)
class Point:
    """A row as a point of the scatter plot, with the number that labels it there and in the table."""

    number: int
    label: str
    quality: float
    seconds: float
    on_front: bool


def interval_plot(bars: Sequence[Bar], scale: Interval, title: str, narrow: bool = False) -> str:
    """Draw a line per row on the whole scale: a dot for the mean, a bar for its interval."""
    description = f"{len(bars)} rows on a scale from {scale.low:g} to {scale.high:g}; the table below has the figures."
    return _bars(bars, (scale.low, scale.high), steps_with_ends(*scale, 8 if narrow else 9), title, description, narrow)


def effects_plot(factors: Mapping[str, Sequence[Bar]], title: str, narrow: bool = False) -> str:
    """Draw the distances of each factor's levels from the overall mean: around 0, and all on the same scale."""
    bars = [bar for levels in factors.values() for bar in levels]
    ends = [abs(end) for bar in bars for end in (bar.mean, *(bar.interval or ())) if end is not None]
    reach = max(0.1, 1.05 * max(ends, default=0.0))
    ticks = even_steps(-reach, reach, 7 if narrow else 9)
    description = f"Around 0, the mean of all: {', '.join(_describe(bar) for bar in bars)}."
    lines: list[Bar | str] = []
    for name, levels in factors.items():
        lines += [name, *levels]
    return _bars(lines, (-reach, reach), ticks, title, description, narrow, signed=True)


def _bars(
    lines: Sequence[Bar | str],
    ends: tuple[float, float],
    ticks: Sequence[float],
    title: str,
    description: str,
    narrow: bool,
    signed: bool = False,
) -> str:
    """Draw bars with headings between them; labels are beside the bars on wide pages, above them on narrow ones."""
    width, pitch = (NARROW, 46.0) if narrow else (WIDE, 32.0)
    labels = [shortened(line if isinstance(line, str) else line.label, 32 if narrow else 38) for line in lines]
    left = _EDGE if narrow else 2 * _EDGE + _LETTER * max((len(label) for label in labels), default=0)
    axis = Axis(*ends, left, width - (_EDGE if narrow else 200.0))
    bottom = _EDGE + sum(_HEADING if isinstance(line, str) else pitch for line in lines)
    drawing = Drawing(width, bottom + _AXIS, title, description, "narrow" if narrow else "wide")
    drawing.group("axis")
    for tick in ticks:
        zero = signed and abs(tick) < 1e-9
        drawing.line(axis.at(tick), _EDGE / 2, axis.at(tick), bottom, "zero" if zero else "grid")
        drawing.text(axis.at(tick), bottom + 16, _number(tick, signed), "tick middle")
    top = _EDGE
    for line, label in zip(lines, labels, strict=True):
        if isinstance(line, str):
            drawing.group("words")
            drawing.text(_EDGE, top + 22.0, label, "heading")
            top += _HEADING
            continue
        middle = top + (32.0 if narrow else pitch / 2)
        text_y = top + 16.0 if narrow else middle + 4.5
        drawing.group("emphasis" if line.emphasis else "muted", f"{line.label}: {_describe(line, with_label=False)}")
        drawing.text(_EDGE, text_y, label, "label")
        drawing.text(width - _EDGE, text_y, _figures(line, signed, short=narrow), "figures end")
        _bar(drawing, axis, middle, line)
        top += pitch
    return drawing.svg()


def _bar(drawing: Drawing, axis: Axis, y: float, bar: Bar) -> None:
    if bar.possible is not None:
        low, high = axis.at(bar.possible.low), axis.at(bar.possible.high)
        drawing.rect(low, y - 8, high - low, 16, "possible", rx=3)
    if bar.interval is not None:
        low, high = axis.at(bar.interval.low), axis.at(bar.interval.high)
        drawing.rect(low, y - 3, high - low, 6, "interval", rx=3)
    if bar.mean is not None:
        drawing.circle(axis.at(bar.mean), y, 5.5, "mean")


def scatter_plot(points: Sequence[Point], quality: str, title: str, narrow: bool = False) -> str:
    """Draw quality against seconds per cell, with the Pareto front as a step line: the best quality for that time."""
    width, height = (NARROW, 300.0) if narrow else (WIDE, 400.0)
    x = _seconds_axis([point.seconds for point in points], 44.0, width - 2 * _EDGE)
    scores = [point.quality for point in points]
    low, high = padded_range(min(scores, default=0.0), max(scores, default=1.0), 6, least=0.5)
    y = Axis(low, high, height - _AXIS - 22, 2 * _EDGE)
    description = f"{len(points)} rows; on the front: {', '.join(p.label for p in points if p.on_front)}."
    drawing = Drawing(width, height, title, description, "narrow" if narrow else "wide")
    drawing.group("axis")
    for tick in even_steps(low, high, 6):
        drawing.line(x.start, y.at(tick), x.end, y.at(tick), "grid")
        drawing.text(x.start - 8, y.at(tick) + 4, _number(tick), "tick end")
    for tick in _seconds_ticks(x, 4 if narrow else 9):
        drawing.line(x.at(tick), y.end, x.at(tick), y.start, "grid")
        drawing.text(x.at(tick), y.start + 18, f"{_number(tick)} s", "tick middle")
    drawing.text(_EDGE / 2, 14, f"{quality}, higher is better", "name")
    how = "seconds a cell, to the left is quicker" + (" (logarithmic)" if x.logarithmic else "")
    drawing.text(x.end, height - 6, how, "name end")
    _front(drawing, x, y, [point for point in points if point.on_front])
    _points(drawing, x, y, points, narrow)
    return drawing.svg()


def _front(drawing: Drawing, x: Axis, y: Axis, front: Sequence[Point]) -> None:
    ordered = sorted(front, key=lambda point: (point.seconds, point.quality))
    corners: list[tuple[float, float]] = []
    for point in ordered:
        if corners:
            corners.append((x.at(point.seconds), corners[-1][1]))
        corners.append((x.at(point.seconds), y.at(point.quality)))
    if corners:
        drawing.group("front")
        drawing.path([*corners, (x.end, corners[-1][1])], "step")


def _points(drawing: Drawing, x: Axis, y: Axis, points: Sequence[Point], narrow: bool) -> None:
    """Draw each point as a dot with its number; those on the front are on top and, where there is room, have names."""
    positions = {point.number: (x.at(point.seconds), y.at(point.quality)) for point in points}
    taken = [(px - 7, py - 7, px + 7, py + 7) for px, py in positions.values()]
    labels = {}
    for point in sorted(points, key=lambda one: (not one.on_front, one.number)):
        number = str(point.number)
        named = [f"{number}. {shortened(point.label, 34)}"] if point.on_front and not narrow else []
        for text in (*named, number):
            free = _free_box(drawing, *positions[point.number], 0.9 * _LETTER * len(text), taken)
            if free is not None:
                labels[point.number] = (text, free)
                taken.append(free)
                break
    for point in sorted(points, key=lambda one: (one.on_front, -one.number)):
        title = f"{point.number}. {point.label}: {point.quality:.2f} in {point.seconds:.2f} s"
        drawing.group("emphasis" if point.on_front else "muted", title)
        drawing.circle(*positions[point.number], 6.0 if point.on_front else 5.0, "mean")
        if point.number in labels:
            text, (left, _, _, bottom) = labels[point.number]
            drawing.text(left, bottom - 3, text, "point")


def _free_box(drawing: Drawing, x: float, y: float, width: float, taken: Sequence[_Box]) -> _Box | None:
    """Return a box for a label beside a point that overlaps no dot and no other label; None if there is no room."""
    lefts = (x - 6 - width, x + 6, x - width / 2)
    positions = [(lefts[0], y - 20), (lefts[1], y - 20), (lefts[1], y + 5), (lefts[2], y - 22), (lefts[2], y + 7)]
    positions += [(x - 10 - width, y - 7), (x + 10, y - 7), (lefts[0], y + 5)]
    for left, top in positions:
        box = (left, top, left + width, top + 15)
        inside = left > 0 and top > 18 and box[2] < drawing.width and box[3] < drawing.height - _AXIS
        if inside and not any(_overlap(box, other) for other in taken):
            return box
    return None


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _seconds_axis(seconds: Sequence[float], start: float, end: float) -> Axis:
    """Return an axis from 0, or a logarithmic one if the slowest takes over twelve times as long as the quickest."""
    low, high = min(seconds, default=0.0), max(seconds, default=1.0)
    if 0 < low < high / 12:
        return Axis(low * 0.7, high * 1.3, start, end, logarithmic=True)
    return Axis(0.0, padded_range(0.0, high * 1.05, 8)[1], start, end)


def _seconds_ticks(x: Axis, most: int) -> list[float]:
    if not x.logarithmic:
        return even_steps(x.low, x.high, most)
    ticks = log_steps(x.low, x.high)
    return ticks[:: -(-len(ticks) // most)] if ticks else ticks


def _describe(bar: Bar, with_label: bool = True) -> str:
    text = "not scored" if bar.mean is None else f"{bar.mean:.2f}"
    if bar.interval is not None:
        text += f" ({bar.interval.low:.2f} to {bar.interval.high:.2f})"
    if bar.possible is not None:
        text += f", with what is missing {bar.possible.low:.2f} to {bar.possible.high:.2f}"
    return f"{bar.label} {text}" if with_label else text


def _figures(bar: Bar, signed: bool, short: bool) -> str:
    if bar.mean is None:
        return "not scored"
    sign = "+" if signed else ""
    text = f"{bar.mean:{sign}.2f}"
    if bar.interval is not None and not short:
        text += f" ({bar.interval.low:{sign}.1f} to {bar.interval.high:{sign}.1f})"
    return text if short or not bar.remark else f"{text} {bar.remark}"


def _number(value: float, signed: bool = False) -> str:
    return f"{value:+g}" if signed and abs(value) > 1e-9 else f"{0 if abs(value) < 1e-9 else value:g}"
