"""What a check found, as `tipbench airflow init` shows it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    good: bool | None  # None: worth knowing, and in nobody's way
    what: str
    text: str  # where it is not good, with what to do next
