"""Tables for pandas, which is there where MLflow is installed."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tipbench.core.errors import MissingExtra

if TYPE_CHECKING:
    from pandas import DataFrame


def frame_of(lines: Sequence[Mapping[str, Any]]) -> "DataFrame":
    """A line of the table for each mapping. Raises MissingExtra where pandas is not installed."""
    try:
        from pandas import DataFrame
    except ModuleNotFoundError:
        raise MissingExtra("tables need pandas, which is not installed: pip install pandas") from None
    return DataFrame(lines)
