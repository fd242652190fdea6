"""From values to places in a picture, and the values to write along the way."""

from dataclasses import dataclass
from math import ceil, floor, log10


@dataclass(frozen=True)
class Axis:
    """Values from `low` to `high`, drawn from `start` to `end`; what lies beyond is drawn at the edge."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        low, high = self._measure(self.low), self._measure(self.high)
        share = (self._measure(value) - low) / (high - low) if high > low else 0.5
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def _measure(self, value: float) -> float:
        return log10(max(value, self.low)) if self.logarithmic else value


def even_steps(low: float, high: float, most: int) -> list[float]:
    """Round values between the two, evenly apart, at most so many."""
    step = _round_step(low, high, most)
    return [round(number * step, 10) for number in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def with_ends(low: float, high: float, most: int) -> list[float]:
    """Round values, and both ends of a scale, which matter though they may not be round."""
    near = 0.6 * _round_step(low, high, most)
    inner = [value for value in even_steps(low, high, most) if value - low > near and high - value > near]
    return [low, *inner, high]


def tenfold_steps(low: float, high: float) -> list[float]:
    """1, 2 and 5 of every power of ten between the two."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    found = [first * 10.0**power for power in powers for first in (1, 2, 5)]
    return [value for value in found if low <= value <= high]


def roomy(low: float, high: float, most: int, least: float = 1e-6) -> tuple[float, float]:
    """A little wider than the two, to round values; never a point."""
    if high - low < least:
        low, high = low - least / 2, high + least / 2
    step = _round_step(low, high, most)
    return floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step


def _round_step(low: float, high: float, most: int) -> float:
    width = max(high - low, 1e-9)
    power = 10.0 ** floor(log10(width / most))
    return next((first * power for first in (1, 2, 5) if width / (first * power) <= most), 10 * power)
