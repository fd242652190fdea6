"""Figures as people say them."""

from tests.server.ui.made_panel import NOW_MS, a_job, a_progress
from tipbench.server.jobs.progress import Progress
from tipbench.server.ui.messages import counts_sentence, estimate_sentence, status_of, took
from tipbench.server.views.run_requests import Estimate


def test_estimates_tell_where_they_come_from() -> None:
    assert estimate_sentence(Estimate(1, 0, 1, 60, measured=False)) == (
        "1 cell; 1 to generate: about 1 min (a rule of thumb, since there are no earlier cells)."
    )
    assert estimate_sentence(Estimate(48, 48, 0, 0, measured=True)) == (
        "48 cells, 48 stored already: there is nothing to generate."
    )
    assert estimate_sentence(Estimate(16, 0, 16, 60, measured=True, at_most=True)) == (
        "16 cells, fewer if some are stored already: at most about 1 min (from earlier cells of these models)."
    )


def test_where_a_job_is() -> None:
    assert status_of(a_job(), a_progress()) == "Collecting"
    assert status_of(a_job(state="queued"), Progress()) == "Queued"
    assert status_of(a_job(cancelling=True), a_progress()) == "Cancelling"
    assert status_of(a_job(state="cancelled", cancelling=True), a_progress()) == "Cancelled"


def test_counts_and_times() -> None:
    assert counts_sentence(a_job(), Progress(cells=1, done=1)) == "1 of 1 cell generated."
    assert counts_sentence(a_job(), Progress(cells=9, done=4, empty=2, stored=3)) == (
        "4 of 9 cells generated, 2 empty; 3 were stored already."
    )
    assert took(a_job(), NOW_MS + 5_000) == "1 min 35 s"
    assert took(a_job(state="finished"), NOW_MS + 5_000) == "1 min 30 s"
    assert took(a_job(state="queued"), NOW_MS) == "–"
