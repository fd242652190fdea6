"""What another user of the machine can read of a home in which everything was done: nothing."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tests.integration.filling import fill
from tests.integration.recommending import recommending
from tests.integration.serving import ended_job, serving, start_run
from tests.recommender.service.asking import request

EXPERIMENT = "tip-bench-private"
NOBODY = 65534


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Not there yet, and not below pytest's own folder, which hides everything from others anyway."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    monkeypatch.setenv("TIPBENCH_HOME", str(folder / "home"))
    monkeypatch.chdir(folder)
    before = os.umask(0o022)
    yield folder / "home"
    os.umask(before)
    shutil.rmtree(folder)


def test_another_user_reads_nothing_of_the_home(home: Path) -> None:
    grid = ("--models", "scripted/a", "--prompts", "v1", "--n-scenarios", "2", "--experiment", EXPERIMENT)
    assert tipbench("doctor").status in (0, 1)
    assert tipbench("collect", *grid).status == 0
    assert tipbench("judge", "--experiment", EXPERIMENT, "--export", "judge.json").status == 0
    fill(home.parent / "judge.json")
    assert tipbench("judge", "--experiment", EXPERIMENT, "--apply", "judge.json").status == 0
    assert tipbench("compare", "--experiment", EXPERIMENT).status == 0
    with serving() as server, server.client() as client:
        job = start_run(client, models="scripted/b", prompts="v1", n_scenarios=1, experiment=EXPERIMENT)
        assert ended_job(client, job["id"])["exit_status"] == 0
        client.post("/api/judging/next", json={"experiment": EXPERIMENT}).raise_for_status()
    with recommending() as service, service.client() as client:
        client.post("/score/egreedy/v2", json=request("e1")).raise_for_status()
    assert home.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o077 for path in home.rglob("mlflow.db*")} == {0}
    assert len(list(home.rglob("*"))) > 30
    if os.getuid() != 0:
        pytest.skip("only root can try it as another user")
    found = subprocess.run(
        ["find", home.parent, "-readable"], user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True
    )
    beside = {home.parent, home.parent / "judge.json", home.parent / "judge.schema.json"}  # as the user's own files are
    assert set(map(Path, found.stdout.split())) == beside
