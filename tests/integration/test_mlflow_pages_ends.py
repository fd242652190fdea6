"""MLflow's server behind our pages ends when it should: with ours, when nobody looks, when it is of no use."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.integration.served_pages import mlflow_servers, served, wait_until
from tipbench.bench.tracking.new_database import NewDatabase
from tipbench.core.settings import Settings
from tipbench.server.mlflow_pages.pages import MlflowPages

BROWSER = {"Accept": "text/html"}


@pytest.fixture
def database(empty_databases: Path, tmp_path: Path) -> Path:
    path = tmp_path / "mlflow.db"
    NewDatabase(path, path.parent / "mlflow-artifacts", empty_databases).finish()
    return path


def test_it_ends_with_ours_even_if_ours_is_killed(database: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.integration.served_pages", f"sqlite:///{database}", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as ours:
        try:
            assert ours.stdout is not None
            url = ours.stdout.readline().strip()
            wait_until(
                lambda: httpx.get(f"{url}/health", timeout=60).text == "OK", 60
            )  # on a busy machine it takes long
            [server] = mlflow_servers(ours.pid)
            socket = Path(server.cmdline()[-1])
        finally:
            os.kill(ours.pid, signal.SIGKILL)
    server.wait(20)
    wait_until(lambda: not socket.parent.exists(), 5)


def test_it_is_stopped_when_nobody_looks_and_started_by_whoever_comes(database: Path, tmp_path: Path) -> None:
    others = mlflow_servers()

    async def story() -> list[int]:
        pages = MlflowPages(f"sqlite:///{database}", tmp_path, Settings(), idle_s=0.3)
        transport = httpx.ASGITransport(Starlette(routes=[Mount("/mlflow", pages)]))
        async with httpx.AsyncClient(transport=transport, base_url="http://ours") as client:
            got = [await client.get("/mlflow/health", timeout=60)]
            deadline = time.monotonic() + 20
            while mlflow_servers() != others and time.monotonic() < deadline:
                await asyncio.sleep(0.05)
            got.append(await client.get("/mlflow/", headers=BROWSER))
            await pages.close()
            got.append(await client.get("/mlflow/health"))
        return [answer.status_code for answer in got]

    assert asyncio.run(story()) == [200, 503, 503]
    assert mlflow_servers() == others


def test_a_database_that_mlflow_refuses_is_named_with_its_reason(database: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.db"
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(old)) as copy:
        source.backup(copy)
        copy.execute("UPDATE alembic_version SET version_num = '6953534de441'")
        copy.commit()
    with served(MlflowPages(f"sqlite:///{old}", tmp_path, Settings())) as url:
        first, second = (httpx.get(f"{url}/health", timeout=60) for _ in range(2))
        assert (first.status_code, second.status_code) == (503, 503)
        assert first.json()["message"].startswith(f"the MLflow database {old} was made by an older")
        assert "it can be started again in" in second.json()["message"]
