"""A process id that belongs to somebody else by now is never taken for a job's."""

import json
import os
from pathlib import Path

from tipbench.server.jobs.job_folder import JobFolder
from tipbench.server.jobs.job_watch import Processes


def test_a_reused_process_id_is_not_ours(tmp_path: Path) -> None:
    folder = JobFolder(tmp_path)
    (tmp_path / "pids.json").write_text(json.dumps({"supervisor": os.getpid(), "child": os.getppid()}))
    assert Processes().find_group(folder, None) is None
    assert Processes().find_group(folder, os.getpid()) is None
