"""Where servers listen."""

import socket

import pytest

from tipbench.cli.listening import is_loopback, open_listener, trusted_proxies, url_of, uvicorn_options
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings


@pytest.mark.parametrize(
    ("host", "told"),
    [
        *((host, True) for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost")),
        *((host, False) for host in ("0.0.0.0", "::", "10.0.0.7", "bench.example", "localhost.example")),
    ],
)
def test_what_only_this_machine_can_reach(host: str, told: bool) -> None:
    assert is_loopback(host) is told


def test_answers_are_not_held_back_until_the_next_packet() -> None:
    """asyncio turns Nagle's algorithm off only where the socket says that it speaks TCP."""
    with open_listener("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()) as client:
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP
            assert client.getpeername() == listener.getsockname()


def test_an_address_has_its_url() -> None:
    with open_listener("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert url_of("127.0.0.1", listener) == f"http://127.0.0.1:{port}"
        assert url_of("::1", listener) == f"http://[::1]:{port}"


@pytest.mark.parametrize(
    ("host", "next_step"),
    [("127.0.0.1", "stop what is using it"), ("192.0.2.1", "another --host"), ("no host", "--host")],
)
def test_an_address_that_can_not_be_had_is_told(host: str, next_step: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InvalidInput, match=next_step) as caught:
        open_listener(host, taken.getsockname()[1])
    assert host in str(caught.value)


def test_only_proxies_that_are_named_are_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")  # uvicorn's own variable, which would believe everybody
    assert uvicorn_options(False)["forwarded_allow_ips"] == []
    assert uvicorn_options(True)["forwarded_allow_ips"] == ["127.0.0.1"]
    monkeypatch.setenv("TIPBENCH_TRUSTED_PROXIES", " 10.0.0.0/8, ::1 ")
    assert uvicorn_options(True)["forwarded_allow_ips"] == ["10.0.0.0/8", "::1"]


@pytest.mark.parametrize("named", ["*", "proxy.example", "127.0.0.1,10.0.0.300", "10.0.0.7/8"])
def test_a_proxy_that_is_no_address_is_refused(named: str) -> None:
    with pytest.raises(InvalidInput, match=r"TIPBENCH_TRUSTED_PROXIES names .* which is not an address or network"):
        trusted_proxies(Settings({"TIPBENCH_TRUSTED_PROXIES": named}))
