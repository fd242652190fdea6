"""What came of a job, from what its processes left."""

import signal
from typing import NamedTuple

from tipbench.progress import Progress
from tipbench.runners.interface import JobState
from tipbench.runners.job_folder import Exit

KEPT = "what it stored is kept: run it again and it goes on from there"
WITHOUT_A_WORD = f"its process ended without a word (the machine or somebody killed it); {KEPT}"
_INTERRUPTED = 130
_REFUSED = 2


class Ending(NamedTuple):
    state: JobState
    exit_status: int | None
    message: str


def ending_of(ended: Exit | None, progress: Progress | None, cancelled: bool, killed: bool, grace_s: float) -> Ending:
    """`killed`: by us, because it did not end when it was asked to."""
    if ended and ended.status in (0, 1) and progress and progress.phase == "done":
        return Ending("finished", ended.status, progress.message)
    status = ended.status if ended else -signal.SIGKILL if killed else None
    if cancelled:
        how = f"it did not end within {grace_s:g} s and was killed" if killed else "it ended when it was asked to"
        return Ending("cancelled", status, f"cancelled; {how}; {KEPT}")
    return Ending("failed", status, _why(ended, progress))


def _why(ended: Exit | None, progress: Progress | None) -> str:
    if ended is None:
        return WITHOUT_A_WORD
    if ended.status < 0:
        asked = " (was it out of memory?)" if ended.status == -signal.SIGKILL else ""
        return f"killed by signal {-ended.status}{asked}; {KEPT}"
    if ended.status == _INTERRUPTED:
        return f"interrupted by a signal; {KEPT}"
    if ended.status == _REFUSED and progress and progress.message:
        return progress.message
    return f"it ended with status {ended.status} before it was done; the end of its log says why"
