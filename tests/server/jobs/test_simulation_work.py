"""What a simulation's process is told to do."""

from pathlib import Path

from tipbench.server.jobs.interface import Job
from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.job_store import StoredJob
from tipbench.server.jobs.simulations import SimulationJobKind

CONFIG = {"kind": "gate", "candidate": "linucb", "incumbent": "egreedy"}


def test_it_leaves_progress_and_outcome_in_its_folder(tmp_path: Path) -> None:
    stored = StoredJob(Job("s1", "queued", CONFIG, 1), False, False, (), None, None, False)
    command = SimulationJobKind().command(stored, JobFolder(tmp_path))
    assert command[1:6] == ["-P", "-m", "tipbench", "sim", "gate"]
    assert command[-4:] == ["--progress", str(tmp_path / "progress.json"), "--out", str(tmp_path / "outcome.json")]
    assert SimulationJobKind().name(stored.job) == "simulation s1 (linucb against egreedy)"
