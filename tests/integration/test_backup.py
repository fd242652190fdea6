"""A backup of a home in which everything is at work. benchmarks/backup_kills does more of it."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.integration.command import tipbench, tipbench_process
from tests.integration.recommending import recommending
from tests.integration.serving import until
from tests.integration.under_load import POLICY, home_at_work, problems_of
from tipbench.core.backups import finished_backups

KILLS = 2


def test_a_backup_under_load_has_all_that_was_acknowledged_and_a_killed_one_leaves_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backups = tmp_path / "backups"
    backups.mkdir()
    drawn = random.Random(7)
    with home_at_work(home, tmp_path) as load:
        until(lambda: all(load.acknowledged()))
        for number in range(KILLS):
            file = backups / f"killed-{number}"
            process = subprocess.Popen(
                [sys.executable, "-m", "tipbench", "backup", str(file)],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(drawn.uniform(0.3, 1.0))
            process.kill()
            process.wait()
        acknowledged = load.acknowledged()
        file = backups / "finished"
        done = tipbench_process("backup", str(file))
        assert done.status == 0, done.err
    noted = {found.path for found in finished_backups(home)}
    assert noted == set(backups.iterdir()), "and no temporary file is left"
    restored = tmp_path / "restored"
    monkeypatch.setenv("TIPBENCH_HOME", str(restored))
    done = tipbench("restore", str(file))
    assert done.status == 0, done.err
    assert list(problems_of(restored, acknowledged)) == []
    compared = tipbench("compare", "--experiment", next(iter(acknowledged.cells)))
    assert compared.status == 0, compared.err
    event, expected = next(iter(acknowledged.events.items()))
    with recommending(TIPBENCH_HOME=str(restored)) as service, service.client() as client:
        again = {"user_id": expected.user_id, "event_id": event, "reward": expected.reward}
        assert client.post(f"/reward/{POLICY}", json=again).json()["status"] == "duplicate"
