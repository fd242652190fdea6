"""`tipbench serve`: what it refuses before it begins, and what it shows when it does."""

import re
import socket
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tests.integration.serving import Served, serving
from tipbench.core.settings import Settings

TOKEN = re.compile(r"Admin token, shown this once: (\S+)")


def test_no_other_address_without_a_token() -> None:
    done = tipbench("serve", "--host", "0.0.0.0", "--port", "0")
    assert done.status == 2
    assert "TIPBENCH_ADMIN_TOKEN" in done.err


def test_an_address_that_is_taken_is_told_and_nothing_is_changed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = tipbench("serve", "--port", str(taken.getsockname()[1]))
    assert done.status == 2
    assert "use another --port" in done.err
    assert not (Settings().home / "server").exists()


@pytest.mark.parametrize("named", ["--mlflow-url", "MLFLOW_TRACKING_URI"])
def test_passwords_do_not_belong_into_the_address(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "http://me:s3cret@mlflow:5000/"
    flags = (named, url) if named.startswith("--") else ()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "" if flags else url)
    done = tipbench("serve", "--port", "0", *flags)
    assert done.status == 2
    assert "MLFLOW_TRACKING_PASSWORD" in done.err
    assert "s3cret" not in done.err


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        ("TIPBENCH_ADMIN_TOKEN", "short", "TIPBENCH_ADMIN_TOKEN has 5 characters; use at least 20"),
        ("TIPBENCH_METRICS_TOKEN", "short", "TIPBENCH_METRICS_TOKEN has 5 characters; use at least 20"),
        ("TIPBENCH_LOG_FORMAT", "xml", "TIPBENCH_LOG_FORMAT must be text or json; it is 'xml'"),
    ],
)
def test_settings_that_can_not_be_used_are_refused(
    setting: str, value: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(setting, value)
    done = tipbench("serve", "--port", "0")
    assert done.status == 2
    assert why in done.err


def test_the_token_is_shown_once_and_can_be_made_anew(tmp_path: Path) -> None:
    store = ("--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}")
    first = Served(*store, TIPBENCH_ADMIN_TOKEN="")
    token = TOKEN.search("".join(first.out))
    assert token
    with first.client(token[1]) as client:
        assert client.get("/api/jobs").status_code == 200
    logged = first.end()
    assert token[1] not in logged
    kept = b"".join(path.read_bytes() for path in (Settings().home / "server").rglob("*") if path.is_file())
    assert token[1].encode() not in kept
    with serving(*store, TIPBENCH_ADMIN_TOKEN="") as second:
        assert not TOKEN.search("".join(second.out))
        with second.client(token[1]) as client:
            assert client.get("/api/jobs").status_code == 200
    with serving(*store, "--new-token", TIPBENCH_ADMIN_TOKEN="") as third:
        other = TOKEN.search("".join(third.out))
        assert other
        with third.client(token[1]) as client:
            assert client.get("/api/jobs").status_code == 401
        with third.client(other[1]) as client:
            assert client.get("/api/jobs").status_code == 200


def test_two_servers_do_not_share_a_home(tmp_path: Path) -> None:
    store = ("--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}")
    with serving(*store):
        second = tipbench("serve", "--port", "0", *store)
    assert second.status == 2
    assert "another" in second.err


def test_who_may_not_serve_shows_no_token_and_voids_none(tmp_path: Path) -> None:
    store = ("--mlflow-url", f"sqlite:///{tmp_path / 'm.db'}")
    with serving(*store, TIPBENCH_ADMIN_TOKEN="") as first:
        token = TOKEN.search("".join(first.out))
        assert token
        second = tipbench("serve", "--port", "0", "--new-token", *store)
        assert second.status == 2
        assert not TOKEN.search(second.out)
        with first.client(token[1]) as client:
            assert client.get("/api/jobs").status_code == 200
