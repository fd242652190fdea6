"""Counts, durations, sizes and times as people write them."""

from datetime import UTC, datetime


def plural(word: str, count: int) -> str:
    """The word in its form for this count."""
    return word if count == 1 else f"{word}s"


def counted(count: int, word: str) -> str:
    """The count with its word: "1 cell", "2 cells"."""
    return f"{count} {plural(word, count)}"


def duration(seconds: float) -> str:
    """A duration in its two largest units: "8 s", "2 min 10 s", "3 h 5 min"."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def size(count: int | None) -> str:
    """A number of bytes as "120 MB" or "1.5 GB"; a dash for an unknown one."""
    return "–" if count is None else f"{count / 1e9:.1f} GB" if count >= 0.9995e9 else f"{count / 1e6:.0f} MB"


def utc_minute(milliseconds: float, zone: bool = True) -> str:
    """A time as "2026-04-27 18:05 UTC"."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC" if zone else "%Y-%m-%d %H:%M")


def utc_second(milliseconds: float) -> str:
    """A time as "2026-04-27 18:05:12 UTC"."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def utc_day(milliseconds: float) -> str:
    """A day as "2026-04-27"."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d")
