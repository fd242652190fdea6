"""`tipbench recommend serve`: what it refuses before it begins."""

import socket
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tests.integration.recommending import KEY


def test_no_other_address_without_a_key() -> None:
    done = tipbench("recommend", "serve", "--host", "0.0.0.0", "--port", "0")
    assert done.status == 2
    assert "TIPBENCH_SERVING_KEY" in done.err


def test_an_address_that_is_taken_is_told_and_nothing_is_changed(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = tipbench("recommend", "serve", "--port", str(taken.getsockname()[1]))
    assert done.status == 2
    assert "use another --port" in done.err
    assert not (home / "recommender").exists()


@pytest.mark.parametrize(
    ("flags", "environment", "told"),
    [
        ((), {"TIPBENCH_SERVING_KEY": "short"}, "TIPBENCH_SERVING_KEY has 5 characters; use at least 20"),
        ((), {"TIPBENCH_METRICS_TOKEN": "short"}, "TIPBENCH_METRICS_TOKEN has 5 characters; use at least 20"),
        ((), {"TIPBENCH_LOG_FORMAT": "xml"}, "TIPBENCH_LOG_FORMAT must be text or json; it is 'xml'"),
        (("--new-key",), {"TIPBENCH_SERVING_KEY": KEY}, "the key is set by TIPBENCH_SERVING_KEY"),
        (("--shadow", "nobody"), {}, "there is no shadow policy 'nobody'"),
        (("--workers", "0"), {}, "--workers"),
        ((), {"TIPBENCH_REWARD_WINDOW": "-1"}, "TIPBENCH_REWARD_WINDOW must be seconds"),
    ],
)
def test_what_can_not_be_served_is_told_and_no_key_is_shown(
    flags: tuple[str, ...], environment: dict[str, str], told: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = tipbench("recommend", "serve", "--port", "0", *flags)
    assert done.status == 2
    assert told in done.err
    assert "Key" not in done.out
    assert not (home / "recommender" / "key").exists()
