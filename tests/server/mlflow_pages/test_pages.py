"""What stands at /mlflow when MLflow's own pages can't, or are elsewhere. No server of MLflow is started here."""

import asyncio
import importlib.util
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount

from tipbench.core.settings import Settings
from tipbench.server.mlflow_pages.pages import MlflowPages, Notice

BROWSER = {"Accept": "text/html,application/xhtml+xml"}


def _ask(pages: MlflowPages, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(Starlette(routes=[Mount("/mlflow", pages)]))
        async with httpx.AsyncClient(transport=transport, base_url="http://ours") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(asked())


def test_a_server_of_its_own_is_where_its_pages_are(tmp_path: Path) -> None:
    pages = MlflowPages("https://user:secret@mlflow.example/x/", tmp_path, Settings())
    answer = _ask(pages, "/mlflow/", **BROWSER)
    assert (answer.status_code, answer.headers["location"]) == (303, "https://mlflow.example/x/")
    assert pages.run_path("3", "abc") == "https://mlflow.example/x/#/experiments/3/runs/abc"


def test_the_page_of_a_run_in_a_file_is_below_ours(tmp_path: Path) -> None:
    pages = MlflowPages(f"sqlite:///{tmp_path / 'mlflow.db'}", tmp_path, Settings())
    assert pages.run_path("3", "abc") == "/mlflow/#/experiments/3/runs/abc"


def test_without_a_database_nothing_is_started_and_none_is_made(tmp_path: Path) -> None:
    pages = MlflowPages(f"sqlite:///{tmp_path / 'mlflow.db'}", tmp_path, Settings())
    answer = _ask(pages, "/mlflow/", **BROWSER)
    assert answer.status_code == 404
    assert answer.text == "There are no results yet, so MLflow has nothing to show; run a collection first."
    assert list(tmp_path.iterdir()) == []


def test_without_mlflow_one_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    pages = MlflowPages(f"sqlite:///{tmp_path / 'mlflow.db'}", tmp_path, Settings())
    answer = _ask(pages, "/mlflow/", **BROWSER)
    assert answer.status_code == 501
    assert "pip install 'tipbench[mlflow]'" in answer.text


def test_a_script_gets_what_is_refused_as_mlflow_would_say_it(tmp_path: Path) -> None:
    pages = MlflowPages(f"sqlite:///{tmp_path / 'mlflow.db'}", tmp_path, Settings())
    answer = _ask(pages, "/mlflow/api/2.0/mlflow/experiments/create", "POST")
    assert answer.status_code == 403
    assert answer.json()["error_code"] == "PERMISSION_DENIED"
    assert answer.json()["message"].startswith("POST /api/2.0/mlflow/experiments/create is not available here: ")


def test_a_browser_gets_a_page_in_the_dress_that_was_given(tmp_path: Path) -> None:
    def dressed(request: Request, notice: Notice) -> Response:
        return HTMLResponse(f"<p>{request.url.path}: {notice.sentence}", notice.status)

    pages = MlflowPages(f"sqlite:///{tmp_path / 'mlflow.db'}", tmp_path, Settings(), page=dressed)
    answer = _ask(pages, "/mlflow/", **BROWSER)
    assert answer.text.startswith("<p>/mlflow/: There are no results yet")
    assert answer.headers["cache-control"] == "no-store"


def test_a_body_that_mlflow_would_not_read_is_refused(tmp_path: Path) -> None:
    pages = MlflowPages(f"sqlite:///{tmp_path / 'mlflow.db'}", tmp_path, Settings())
    answer = _ask(pages, "/mlflow/api/2.0/mlflow/runs/delete", "POST", **{"Transfer-Encoding": "chunked"})
    assert answer.status_code == 411
    assert "send a Content-Length" in answer.json()["message"]
