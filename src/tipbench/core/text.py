"""Human-readable counts, durations, sizes and times."""

from datetime import UTC, datetime


def plural(word: str, count: int) -> str:
    """Return the word in the singular or plural, as the count requires."""
    if count == 1:
        return word
    if word.endswith(("ch", "sh", "s", "x", "z")):
        return f"{word}es"
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return f"{word[:-1]}ies"
    return f"{word}s"


def counted(count: int, word: str) -> str:
    """Format a count with its noun: "1 cell", "2 cells"."""
    return f"{count} {plural(word, count)}"


def duration(seconds: float) -> str:
    """Format a duration in its two largest units: "8 s", "2 min 10 s", "3 h 5 min"."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def size(count: int | None) -> str:
    """Format a number of bytes as "120 MB" or "1.5 GB"; a dash if it is unknown."""
    return "–" if count is None else f"{count / 1e9:.1f} GB" if count >= 0.9995e9 else f"{count / 1e6:.0f} MB"


def utc_minute(milliseconds: float, zone: bool = True) -> str:
    """Format a time as "2026-04-27 18:05 UTC"; without `zone`, "UTC" is left out."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC" if zone else "%Y-%m-%d %H:%M")


def utc_second(milliseconds: float) -> str:
    """Format a time as "2026-04-27 18:05:12 UTC"."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def utc_day(milliseconds: float) -> str:
    """Format the day of a time as "2026-04-27"."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d")


def iso_second(milliseconds: float) -> str:
    """Format a time as "2026-04-27T18:05:12Z"."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def capital(text: object) -> str:
    """Return the text with a capital first letter, to begin a sentence with it."""
    words = str(text)
    return words[:1].upper() + words[1:]
