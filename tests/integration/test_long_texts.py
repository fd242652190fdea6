"""An ugly answer of 20,000 characters comes back from MLflow character for character, by files and by tags."""

import json
from pathlib import Path
from typing import Literal

import pytest
import yaml

from tests.integration.command import tipbench
from tests.integration.mlflow_server import MlflowServer
from tipbench.settings import Settings
from tipbench.tracking.address import open_store
from tipbench.tracking.runs import stored_runs

UGLY = ('"\\ 😀🧪\x00\ud83d\x1b[31m\r\n\t\u202e…' * 2_000)[:20_000]


@pytest.mark.parametrize("kept", ["embedded", "served", "file"])
def test_nothing_of_a_long_and_ugly_answer_is_lost(kept: Literal["embedded", "served", "file"], tmp_path: Path) -> None:
    script = tmp_path / "ugly.yaml"
    rules = [{"when": "", "answer": UGLY}]
    script.write_text(yaml.safe_dump({"parameters": 1_000_000_000, "rules": rules}), encoding="utf-8")
    if kept == "embedded":
        _round_trip(f"sqlite:///{tmp_path / 'mlflow.db'}", script, "file")
        return
    with MlflowServer.start(tmp_path / "server", artifacts=kept) as server:
        _round_trip(server.url, script, "file" if kept == "served" else "tags")


def _round_trip(url: str, script: Path, kept_in: str) -> None:
    done = tipbench(
        *("collect", "--models", f"scripted/{script}", "--prompts", "v1", "--n-scenarios", "1"),
        *("--experiment", "tip-bench-ugly", "--mlflow-url", url),
    )
    assert done.status == 0, done.err
    opened = open_store(url, Settings())
    try:
        (run,) = stored_runs(opened.store, opened.store.experiment("tip-bench-ugly"))
        assert len(UGLY) == 20_000
        assert opened.store.text(run, "raw.txt") == UGLY
        assert json.loads(run.tags["tipbench.text:raw.txt"])["kept_in"] == kept_in
        assert ("artifact:raw.txt" in run.tags) == (kept_in == "tags")
    finally:
        opened.store.close()
