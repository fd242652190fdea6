"""What came of a job, for everything that its processes may leave."""

import pytest

from tipbench.server.jobs.job_folder import Exit
from tipbench.server.jobs.job_watch import ending_of
from tipbench.server.jobs.progress import Progress
from tipbench.server.jobs.subprocess import BenchJobKind

DONE = Progress(phase="done", message="2 cells answered")
STOPPED = Progress(phase="collect", message="Ollama is away")


@pytest.mark.parametrize(
    ("status", "progress", "cancelled", "killed", "state", "says"),
    [
        (0, DONE, False, False, "finished", "2 cells answered"),
        (1, DONE, False, False, "finished", "2 cells answered"),
        (0, DONE, True, False, "finished", "2 cells answered"),  # it was quicker than whoever cancelled it
        (1, STOPPED, False, False, "failed", "it ended with status 1 before it was done; the end of its log says why"),
        (0, None, False, False, "failed", "it ended with status 0 before it was done; the end of its log says why"),
        (2, STOPPED, False, False, "failed", "Ollama is away"),
        (2, None, False, False, "failed", "it ended with status 2 before it was done; the end of its log says why"),
        (
            -9,
            STOPPED,
            False,
            False,
            "failed",
            "killed by signal 9 (was it out of memory?); everything it stored is safe: .*",
        ),
        (
            -11,
            STOPPED,
            False,
            False,
            "failed",
            "killed by signal 11; everything it stored is safe: run it again and .*",
        ),
        (130, STOPPED, False, False, "failed", "interrupted by a signal; everything it stored is safe: .*"),
        (
            None,
            STOPPED,
            False,
            False,
            "failed",
            "its process ended without a message (it was probably killed).*",
        ),
        (130, STOPPED, True, False, "cancelled", "it ended when it was asked to; everything it stored is safe.*"),
        (-15, None, True, False, "cancelled", "it ended when it was asked to; .*"),
        (None, STOPPED, True, True, "cancelled", "it did not end within 30 s and was killed; everything .*"),
    ],
)
def test_every_end(
    status: int | None, progress: Progress | None, cancelled: bool, killed: bool, state: str, says: str
) -> None:
    ended = None if status is None else Exit(status, 5)
    ending = ending_of(ended, progress, cancelled, 30.0 if killed else None, BenchJobKind.unfinished_note)
    assert ending.state == state
    assert ending.exit_status == (-9 if killed else status)
    start, star, _ = says.partition(".*")
    assert ending.message.startswith(start) if star else ending.message == says
