"""Every way in which a server can fail becomes one of our errors, after bounded retries."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.bench.engines.stand_in import Reply, StandIn, free_address
from tipbench.bench.engines.http import PAUSES_S, EngineHttp, amount, whole_number
from tipbench.core.errors import EngineError, EngineUnreachable, GenerationFailed, InvalidInput

OK = Reply({"fine": True})
DIED = Reply({"error": "llama runner process has terminated: exit status 2"}, 500)


class Client:
    """An `EngineHttp` that notes its pauses instead of sleeping."""

    def __init__(self, url: str, timeout_s: float = 5.0, key: str = "") -> None:
        self.slept: list[float] = []
        self.http = EngineHttp(url, "Engine", "start it", timeout_s, key, self.slept.append)

    def ask(self) -> dict[str, Any]:
        try:
            return self.http.json(self.http.post("/x", {"prompt": "hi"}, generation=True), generation=True)
        finally:
            self.http.close()


def test_a_good_answer_needs_one_try(stand_in: StandIn) -> None:
    stand_in.on("/x", OK)
    client = Client(stand_in.url)
    assert client.ask() == {"fine": True}
    assert client.slept == []
    assert stand_in.bodies("/x") == [{"prompt": "hi"}]


@pytest.mark.parametrize("fault", [DIED, Reply(drops=True), Reply({"fine": True}, cut=True)])
def test_a_fault_that_passes_is_retried(stand_in: StandIn, fault: Reply) -> None:
    stand_in.on("/x", fault, OK)
    client = Client(stand_in.url)
    assert client.ask() == {"fine": True}
    assert client.slept == [PAUSES_S[0]]


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (DIED, "answered 500: llama runner process has terminated"),
        (Reply(drops=True), "closed the connection"),
        (Reply({"fine": True}, cut=True), "closed the connection"),
        (Reply(b"no gzip", headers=(("Content-Encoding", "gzip"),)), "closed the connection"),
    ],
)
def test_a_fault_that_stays_ends_the_retries(stand_in: StandIn, fault: Reply, says: str) -> None:
    stand_in.on("/x", fault)
    client = Client(stand_in.url)
    with pytest.raises(GenerationFailed, match=says):
        client.ask()
    assert client.slept == list(PAUSES_S)
    assert len(stand_in.asked) == 3


def test_a_refusal_is_not_retried(stand_in: StandIn) -> None:
    stand_in.on("/x", Reply({"error": {"message": "too long", "code": 400}}, 400))
    with pytest.raises(GenerationFailed, match="answered 400: too long"):
        Client(stand_in.url).ask()
    assert len(stand_in.asked) == 1


@pytest.mark.parametrize(
    "body", [b'{"fine": tr', b"<html>", b"", [1], None, b"\xff\xfe", b"[" * 100_000, {"error": 1, "x": "\x1b[2J"}]
)
def test_an_answer_that_is_no_object_is_a_failed_generation(stand_in: StandIn, body: Any) -> None:
    stand_in.on("/x", Reply(body, 200 if not isinstance(body, dict) else 418))
    with pytest.raises(GenerationFailed) as caught:
        Client(stand_in.url).ask()
    assert len(str(caught.value)) < 500
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("body", [{"error": "the safe's code is 4711"}, b"the safe's code is 4711"])
@pytest.mark.parametrize("status", [400, 403, 500])
def test_only_the_error_of_a_generation_is_repeated(stand_in: StandIn, body: Any, status: int) -> None:
    """An address may have been given to make us read another service's answer aloud."""
    stand_in.on("/x", Reply(body, status))
    http = Client(stand_in.url).http
    with pytest.raises(GenerationFailed) as caught:
        http.json(http.get("/x"))
    http.close()
    assert "4711" not in str(caught.value)


def test_a_hang_ends_at_the_time_limit_and_is_not_tried_again(stand_in: StandIn) -> None:
    stand_in.on("/x", Reply(hangs=True))
    with pytest.raises(GenerationFailed, match=r"did not answer within 0\.2 s; TIPBENCH_ENGINE_TIMEOUT"):
        Client(stand_in.url, timeout_s=0.2).ask()
    assert len(stand_in.asked) == 1


def test_nothing_at_the_address_is_told_at_once() -> None:
    client = Client(free_address())
    with pytest.raises(EngineUnreachable, match=r"Engine at http://127.* can't be reached .*start it"):
        client.ask()
    assert client.slept == []


def test_who_answered_before_may_be_starting_again() -> None:
    with StandIn() as running:
        running.on("/x", Reply({"fine": True}))
        client = Client(running.url)
        client.http.get("/x")
    with pytest.raises(EngineUnreachable):
        client.http.get("/x")
    client.http.close()
    assert client.slept == list(PAUSES_S)


@pytest.mark.parametrize("url", ["http://host:port", "localhost:8080/v1", "ftp://host", "http://a b"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(EngineUnreachable):
        Client(url).ask()


def test_a_prompt_that_can_not_be_sent(stand_in: StandIn) -> None:
    client = Client(stand_in.url)
    with pytest.raises(GenerationFailed, match="can't be sent"):
        client.http.post("/x", {"prompt": "half a pair: \ud800"})
    client.http.close()
    assert stand_in.asked == []


def test_the_key_is_sent_and_never_told(stand_in: StandIn) -> None:
    stand_in.on("/x", Reply({"error": {"message": "Incorrect API key provided: sk-123secret."}}, 401))
    with pytest.raises(GenerationFailed) as caught:
        Client(stand_in.url, key="sk-123secret").ask()
    assert stand_in.asked[0].headers["Authorization"] == "Bearer sk-123secret"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("key", ["sec\nret", "secrét", "sec\x00ret"])
def test_a_key_that_no_header_can_hold(key: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Client("http://localhost:1", key=key)
    assert "sec" not in str(caught.value)


@pytest.mark.parametrize("url", ["http://me:hidden@127.0.0.1:9", "http://me:hid/den@127.0.0.1:9"])
def test_credentials_in_the_address_are_never_told(url: str) -> None:
    with pytest.raises(EngineError) as caught:
        Client(url).ask()
    assert "hid" not in str(caught.value)
    assert "http://127.0.0.1:9" in str(caught.value)


def test_credentials_in_the_address_are_used(stand_in: StandIn) -> None:
    stand_in.on("/x", OK)
    Client(stand_in.url.replace("//", "//me:hidden@")).ask()
    assert stand_in.asked[0].headers["Authorization"].startswith("Basic ")


@pytest.mark.parametrize("read", [amount, whole_number])
@pytest.mark.parametrize("told", [None, True, "12", [1], -1, float("nan"), float("inf"), 2**63], ids=str)
def test_what_is_no_number(read: Callable[[Any], float | None], told: Any) -> None:
    assert read(told) is None


def test_numbers() -> None:
    assert (amount(0.5), whole_number(12.0), whole_number(0)) == (0.5, 12, 0)
