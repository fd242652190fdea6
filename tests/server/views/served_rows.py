"""A made-up leaderboard whose runs have the ids that MLflow gives, and a log in which its tips were served."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.bench.compare.html.boards import board, grid
from tests.recommender.served_events import Clock, Serving
from tipbench.bench.compare.leaderboard import Leaderboard
from tipbench.bench.records import StoredCell
from tipbench.core.identity import text_digest
from tipbench.recommender.records import Candidate, Source


def cells(models: Sequence[str] = ("good", "poor"), prompts: Sequence[str] = ("v1",)) -> list[StoredCell]:
    return [
        replace(cell, run_id=text_digest(cell.run_id)[:32], key=text_digest(cell.key)) for cell in grid(models, prompts)
    ]


def a_board(models: Sequence[str] = ("good", "poor"), prompts: Sequence[str] = ("v1",)) -> Leaderboard:
    return board(cells(models, prompts))


def candidate_of(cell: StoredCell) -> Candidate:
    return Candidate(id=cell.run_id, category="inbox", source=Source(run_id=cell.run_id, cell=cell.key))


def serve(folder: Path, *served: tuple[str, Candidate, float | None], policy: str = "egreedy") -> Path:
    """To this user, this one alone, with this reward; the folder of the log."""
    serving = Serving(folder, Clock())
    for number, (user, candidate, reward) in enumerate(served):
        serving.serve(user, f"e{number}", [candidate], policy)
        if reward is not None:
            serving.reward(user, f"e{number}", reward, policy)
    serving.recommender.close()
    return serving.log
