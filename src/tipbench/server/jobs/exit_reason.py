"""What came of a job, from what its processes left."""

import signal
from typing import NamedTuple

from tipbench.server.jobs.interface import JobState
from tipbench.server.jobs.job_folder import Exit
from tipbench.server.jobs.progress import Progress

KEPT = "what it stored is kept: run it again and it goes on from there"  # of a collection
_INTERRUPTED = 130
_REFUSED = 2


class Ending(NamedTuple):
    state: JobState
    exit_status: int | None
    message: str


def ending_of(
    ended: Exit | None, progress: Progress | None, cancelled: bool, killed_after_s: float | None, kept: str
) -> Ending:
    """`killed_after_s`: by us, because it did not end in that time when it was asked to. `kept`: what is left of it."""
    if ended and ended.status in (0, 1) and progress and progress.phase == "done":
        return Ending("finished", ended.status, progress.message)
    killed = killed_after_s is not None
    status = ended.status if ended else -signal.SIGKILL if killed else None
    if cancelled:
        how = f"did not end within {killed_after_s:g} s and was killed" if killed else "ended when it was asked to"
        return Ending("cancelled", status, f"it {how}; {kept}")
    return Ending("failed", status, _why(ended, progress, kept))


def _why(ended: Exit | None, progress: Progress | None, kept: str) -> str:
    if ended is None:
        return f"its process ended without a word (the machine or somebody killed it); {kept}"
    if ended.status < 0:
        asked = " (was it out of memory?)" if ended.status == -signal.SIGKILL else ""
        return f"killed by signal {-ended.status}{asked}; {kept}"
    if ended.status == _INTERRUPTED:
        return f"interrupted by a signal; {kept}"
    if ended.status == _REFUSED and progress and progress.message:
        return progress.message
    return f"it ended with status {ended.status} before it was done; the end of its log says why"
