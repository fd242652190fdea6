"""Sentences and figures for the pages."""

from tipbench.core.text import counted, duration, plural
from tipbench.server.jobs.interface import Job, JobState
from tipbench.server.jobs.progress import Phase, Progress
from tipbench.server.views.run_requests import Estimate

_PHASES: dict[Phase, str] = {
    "starting": "Starting",
    "waiting": "Queued",
    "collect": "Collecting",
    "judge": "Judging",
    "compare": "Comparing",
    "simulate": "Simulating",
    "publish": "Publishing",
    "done": "Done",
}
_STATES: dict[JobState, str] = {
    "queued": "Queued",
    "running": "Running",
    "finished": "Finished",
    "failed": "Failed",
    "cancelled": "Cancelled",
}


def estimate_sentence(estimate: Estimate) -> str:
    text = counted(estimate.cells, "cell")
    if estimate.stored:
        text += f", {estimate.stored} stored already"
    if not estimate.to_do:
        return f"{text}: there is nothing to generate."
    source = (
        "from earlier cells of these models"
        if estimate.measured
        else "a rule of thumb, since there are no earlier cells"
    )
    if estimate.at_most:
        return f"{text}, fewer if some are stored already: at most about {duration(estimate.seconds)} ({source})."
    return f"{text}; {estimate.to_do} to generate: about {duration(estimate.seconds)} ({source})."


def status_of(job: Job, progress: Progress) -> str:
    """Describe a job's status in a word or two."""
    if job.cancelling and not job.ended:
        return "Cancelling"
    return _PHASES[progress.phase] if job.state == "running" else _STATES[job.state]


def counts_sentence(job: Job, progress: Progress) -> str:
    """Describe how far collecting is; of a job that only judges or publishes, how far that is."""
    if job.is_judging:
        return f"{progress.done} of {counted(progress.cells, 'item')} scored."
    if job.is_publishing:
        return f"{progress.done} of {counted(progress.cells, 'cell')} published."
    text = f"{progress.done} of {progress.cells} {plural('cell', progress.cells)} generated"
    text += "".join(
        f", {number} {what}" for number, what in ((progress.failed, "failed"), (progress.empty, "empty")) if number
    )
    return f"{text}; {progress.stored} were stored already." if progress.stored else f"{text}."


def took(job: Job, now_ms: int) -> str:
    """Return how long a job ran, or has been running."""
    if job.started_ms is None:
        return "–"
    return duration(((now_ms if job.ended_ms is None else job.ended_ms) - job.started_ms) / 1000)
