"""What a collection costs, as ratios within one run: the first one beside later ones, and beside a bare loop.

Processor time, because that hardly depends on what else the machine does; benchmarks.peers measures seconds.
"""

import resource
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks import peers
from benchmarks.parts.collecting import collect
from benchmarks.parts.stand_in import stand_in_server

ROUNDS = 3


def _processor_s(run: Callable[[], object]) -> float:
    """Return the user time of the processes that it starts; that of the system goes to files, and varies."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    run()
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


@pytest.mark.timeout(120)
def test_a_first_collection_costs_no_more_than_a_later_one(tmp_path: Path) -> None:
    """It is 1.0; it was 4 when MLflow made its tables then."""
    first: list[float] = []
    later: list[float] = []
    for number in range(ROUNDS):
        home = tmp_path / f"home-{number}"
        home.mkdir()
        for figures in (first, later):
            database = tmp_path / f"{number}-{len(later)}-{len(first)}.db"
            words = ("--models", "scripted/a", "--n-scenarios", "2")
            figures.append(collect(home, database, "tip-bench-first", *words).processor_s)
    assert min(first) < 1.5 * min(later), (first, later)


@pytest.mark.timeout(240)
def test_a_collection_of_960_cells_beside_a_bare_loop_with_the_same_client(tmp_path: Path) -> None:
    """It is 4 to 5 times the loop's; it was 12 to 14 with httpx and a prompt rendered for each cell."""
    ours, bare = [], []
    with stand_in_server() as server:
        for number in range(ROUNDS):
            folder = tmp_path / str(number)
            folder.mkdir()
            ours.append(_processor_s(lambda folder=folder: peers.tipbench(folder, server, 0)))  # type: ignore[misc]
            bare.append(_processor_s(lambda folder=folder: peers.bare_loop(folder, server, 0)))  # type: ignore[misc]
    assert min(ours) < 9 * min(bare), (ours, bare)
