"""What can go wrong with a task that nothing else in tipbench has a word for."""

from tipbench.core.errors import TipbenchError
from tipbench.core.untrusted import printable

_LONGEST = 10_000  # characters: a conf may repeat names of any length, and an XCom is kept for good


class CellsFailed(TipbenchError):
    """Cells of a model have no answer; they are stored as failures, and tried again with the task."""


class EndedFromOutside(TipbenchError):
    """Somebody cancelled the run, or the worker is going down."""


def words_of(error: Exception) -> str:
    """What the user reads; for an error that nobody foresaw, that it is one."""
    if not isinstance(error, TipbenchError):
        error = TipbenchError(
            f"it ended with an error that nobody foresaw ({type(error).__name__}: {error}); its log has more"
        )
    text = printable(str(error))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
