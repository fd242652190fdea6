"""The judge behind an address: a real server that is good, slow, broken or hostile."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bench.engines.stand_in import Reply, StandIn, free_address
from tests.bench.judge.judges.files import (
    BATCH_ID,
    CLEAR,
    RUN_IDS,
    SECRET_OF_THE_SHUFFLE,
    a_file,
    batch_and_file,
)
from tipbench.bench.judge.judges import webhook
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.judges.webhook import WebhookJudge, batch_key, sign, verify_signature
from tipbench.bench.judge.verify import verify
from tipbench.core.errors import InvalidInput, JudgeFailed, JudgeLater
from tipbench.core.http import tls_context

SECRET = "very-s3cret"
NOW = 1_760_000_000.75
KEY = batch_key(SECRET, BATCH_ID)


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn() as running:
        yield running


def judge(url: str, timeout_s: float = 20, pauses: list[float] | None = None) -> WebhookJudge:
    sleep = (lambda _seconds: None) if pauses is None else pauses.append
    return WebhookJudge(url, SECRET, JudgeName("hook"), timeout_s, lambda: NOW, sleep)


def filled() -> dict[str, Any]:
    file = a_file()
    for item in file["items"]:
        item["scores"]["clarity"] = 3
    return file


def failure(server: StandIn, reply: Reply, timeout_s: float = 20) -> str:
    server.on("/judge", reply)
    with pytest.raises(JudgeFailed) as caught:
        judge(f"{server.url}/judge", timeout_s).score(a_file())
    told = str(caught.value)
    assert told.startswith(f"the judge at {server.url}/judge ")
    assert not [bad for bad in ("\n", SECRET, KEY) if bad in told]
    assert len(server.asked) == 1
    return told


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_file_that_comes_back_at_once(server: StandIn, wrapped: bool) -> None:
    batch, file = batch_and_file()
    before = copy.deepcopy(file)
    server.on("/judge", Reply({"file": filled()} if wrapped else filled()))
    verdicts = verify(judge(f"{server.url}/judge").score(file), batch, CLEAR)
    assert [verdict.scores["clarity"] for verdict in verdicts] == [3, 3, 3, 3]
    assert file == before


def test_a_judge_that_answers_later_is_told_where_to(server: StandIn) -> None:
    server.on("/judge", Reply({}, status=202))
    address = "https://bench.example/"
    with pytest.raises(JudgeLater):
        WebhookJudge(
            f"{server.url}/judge", SECRET, JudgeName("hook"), 20, lambda: NOW, lambda _s: None, callback=address
        ).score(a_file())
    [asked] = server.asked
    assert isinstance(asked.body, dict)
    assert asked.body["callback"] == f"https://bench.example/api/judging/callback/{BATCH_ID}"


def test_it_is_sent_the_file_signed_and_nothing_else(server: StandIn) -> None:
    server.on("/judge", Reply(filled()))
    file = a_file()
    judge(f"{server.url}/judge").score(file)
    [asked] = server.asked
    assert (asked.method, asked.headers["Content-Type"]) == ("POST", "application/json")
    assert asked.body == {"file": file, "batch": BATCH_ID, "batch_key": KEY}
    stamp, signature = asked.headers["X-Tipbench-Timestamp"], asked.headers["X-Tipbench-Signature"]
    assert (stamp, signature) == ("1760000000", sign(SECRET, 1_760_000_000, asked.raw))
    assert verify_signature(SECRET, stamp, asked.raw, signature, NOW)
    sent = f"{asked.headers} {asked.raw.decode()}"
    assert not [known for known in (*RUN_IDS, SECRET_OF_THE_SHUFFLE, SECRET) if known in sent]


def test_candidates_of_any_kind_can_be_sent(server: StandIn) -> None:
    file = a_file(("\ud800\x00\x1b[31m", "ä", "🙂", ""))
    server.on("/judge", Reply(filled()))
    judge(f"{server.url}/judge").score(file)
    assert server.asked[0].body["file"] == file


def test_one_that_takes_the_batch_and_answers_later(server: StandIn) -> None:
    server.on("/judge", Reply(b"", 202))
    with pytest.raises(
        JudgeLater, match=rf"accepted batch {BATCH_ID} .*signed.*key.*API.*tipbench judge --apply FILE"
    ) as later:
        judge(f"{server.url}/judge").score(a_file())
    assert (later.value.batch, later.value.items) == (BATCH_ID, len(a_file()["items"]))
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (Reply({"error": f"no room \x1b[31m {KEY}"}, 500), "answered 500: .*no room"),
        (Reply(b"", 503), r"answered 503: \(nothing\)"),
        (Reply(b"who are you?", 401), "answered 401: who are you?"),
        (Reply(filled(), 201), "answered 201"),
        (Reply(b"", 204), "answered 204"),
        (Reply(filled(), 302, (("Location", "/elsewhere"),)), r"another address \(302\); set TIPBENCH_JUDGE_WEBHOOK"),
        (Reply(filled(), 307, (("Location", "http://127.0.0.1:1/"),)), r"another address \(307\)"),
        (Reply(b"<html>"), "not JSON"),
        (Reply([1]), "not an object"),
        (Reply(b"\xff"), "not UTF-8"),
        (Reply(b""), "not JSON"),
        (Reply(filled(), cut=True), "closed the connection"),
        (Reply(drops=True), "closed the connection"),
    ],
)
def test_anything_else_is_one_sentence_and_no_second_try(server: StandIn, reply: Reply, says: str) -> None:
    assert re.search(says, failure(server, reply))


def test_one_that_hangs(server: StandIn) -> None:
    assert "did not answer within 0.5 s; TIPBENCH_JUDGE_TIMEOUT" in failure(server, Reply(hangs=True), 0.5)


def test_a_huge_answer_is_not_read_to_its_end(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "MOST_BYTES", 2_000_000)
    assert "more than 2 MB" in failure(server, Reply(b"x" * 3_000_000))


def test_more_than_50_mb_are_too_much(server: StandIn) -> None:
    assert "more than 50 MB" in failure(server, Reply(b" " * 50_000_001))


def test_nobody_there_is_tried_three_times() -> None:
    url, pauses = free_address(), list[float]()
    with pytest.raises(JudgeFailed, match=r"can't be reached \(.*refused.*\); start it, or set TIPBENCH_JUDGE_WEBHOOK"):
        judge(url, pauses=pauses).score(a_file())
    assert pauses == [0.5, 2.0]


@pytest.mark.parametrize("url", ["http://nobody.invalid/", "http://["])
def test_a_name_that_nobody_has_is_not_tried_again(url: str) -> None:
    pauses = list[float]()
    with pytest.raises(JudgeFailed, match="can't be reached"):
        judge(url, pauses=pauses).score(a_file())
    assert pauses == []


def test_credentials_in_the_address_are_used_and_not_shown(server: StandIn) -> None:
    server.on("/judge?token=t0ken", Reply(b"no", 500))
    with pytest.raises(JudgeFailed) as caught:
        judge(f"{server.url.replace('//', '//me:pw0rd@')}/judge?token=t0ken").score(a_file())
    assert str(caught.value) == f"the judge at {server.url}/judge answered 500: no"
    assert server.asked[0].headers["Authorization"].startswith("Basic ")


def test_without_a_secret_nothing_is_sent() -> None:
    with pytest.raises(InvalidInput, match=r"needs a secret.*; set TIPBENCH_JUDGE_SECRET"):
        WebhookJudge("http://localhost", "", JudgeName("hook"), 5, lambda: NOW)


@pytest.mark.parametrize("url", ["", "localhost", "ftp://host/", "http://", "http://a:b", "/judge", "http:x"])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(InvalidInput, match="TIPBENCH_JUDGE_WEBHOOK must be an address"):
        judge(url)


def test_a_certificate_file_that_is_not_there(server: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file")
    tls_context.cache_clear()
    with pytest.raises(JudgeFailed, match=r"can't be asked: .*No such file"):
        judge(f"{server.url}/judge").score(a_file())
