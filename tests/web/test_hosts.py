"""The server answers to its own names alone."""

import pytest

from tests.web.small_app import Site
from tipbench.core.errors import InvalidInput
from tipbench.web.hosts import allowed_hosts


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:8765",
        "localhost.",
        "127.0.0.1:80",
        "192.168.1.7",
        "[::1]:8765",
        "[::1]",
        "Bench.Example:443",
    ],
)
def test_own_names_and_addresses_are_served(site: Site, host: str) -> None:
    assert site.call("GET", "/health", {"host": host}).status == 200
    assert site.call("GET", "/forgotten", {"host": host, **site.bearer()}).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "bench.example.evil",
        "x.bench.example",
        "",
        "[::1",
        "127.0.0.1.evil",
        "a b",
    ],
)
@pytest.mark.parametrize("path", ["/health", "/forgotten", "/login", "/nothing"])
def test_any_other_name_is_refused_whoever_asks(site: Site, host: str, path: str) -> None:
    answer = site.call("GET", path, {"host": host, **site.bearer()})
    assert answer.status == 400
    assert "TIPBENCH_ALLOWED_HOSTS" in answer.error["message"]


def test_two_names_are_none(site: Site) -> None:
    assert site.call("GET", "/health", [("host", "localhost"), ("host", "localhost")]).status == 400


def test_names_are_read_from_the_setting() -> None:
    assert allowed_hosts(" a.example, b ,") == ["a.example", "b"]
    assert allowed_hosts("") == []


@pytest.mark.parametrize("name", ["http://a.example", "a.example:80", "*", "*.example", "ä.example", "a b"])
def test_what_is_no_name_is_told(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"TIPBENCH_ALLOWED_HOSTS names .* which is not a host name"):
        allowed_hosts(f"ok.example,{name}")
