"""Whether the service is there."""

import json
import logging

import pytest

from tests.recommender.gates import V2
from tests.recommender.service.conftest import Service
from tests.web.small_app import Caller
from tipbench import __version__
from tipbench.recommender.promotion.files import FilePromotions


def test_everybody_may_ask(service: Service) -> None:
    answer = Caller(service.app)("GET", "/health")
    assert json.loads(answer.body) == {"status": "ok", "version": __version__, "live": "egreedy"}


def test_it_says_who_is_live_now(service: Service) -> None:
    FilePromotions(service.home / "recommender" / "promotions.jsonl").append(V2, 0)
    assert json.loads(Caller(service.app)("GET", "/health").body)["live"] == "egreedy/v2"


def test_why_nobody_can_tell_is_for_the_log_alone(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    path = service.home / "recommender" / "promotions.jsonl"
    path.write_text("nonsense\n", encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        answer = Caller(service.app)("GET", "/health")
    assert answer.status == 503
    assert b"the live policy can't be read; the server's log says why" in answer.body
    assert f"entry 1 in {path}" in caplog.text
    assert str(path).encode() not in answer.body
