"""What a real server logs: no query, no header, no token, and nothing that a terminal would act on."""

import copy
import json
import logging
import re
import sys
from typing import Any

import pytest

from tests.web.small_app import Caller, Clock, Site
from tipbench.core.errors import InvalidInput
from tipbench.core.settings import Settings
from tipbench.web.log import JsonFormatter, RateLimitedLogFilter, log_config


def test_the_config_is_plain_data_but_for_its_formatter_and_its_filter() -> None:
    config = copy.deepcopy(log_config())
    assert config["formatters"]["line"].pop("()")
    assert config["filters"]["rate_limit"].pop("()")
    assert json.loads(json.dumps(config)) == config


def test_a_request_that_ends_in_nothing_still_has_its_line(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tipbench.access")
    with pytest.raises(RuntimeError):
        site.call("GET", "/api/half", site.bearer())
    assert caplog.messages[-1].startswith("GET /api/half 200 ")


def test_what_is_said_again_and_again_is_said_once_a_minute(clock: Clock) -> None:
    seldom = RateLimitedLogFilter(clock)

    def is_said(text: str) -> bool:
        return seldom.filter(logging.LogRecord("asyncio", logging.ERROR, "", 0, text, None, None))

    assert [is_said("out of handles"), is_said("out of handles"), is_said("another"), is_said("another")] == [
        True,
        False,
        True,
        False,
    ]
    clock.now += 61
    assert is_said("another")


def _entry(**record: Any) -> dict[str, Any]:
    """What a record is as JSON, on one line."""
    made = {"name": "tipbench.x", "levelname": "ERROR", "created": 1_700_000_000.5, **record}
    line = JsonFormatter().format(logging.makeLogRecord(made))
    assert not any(ord(letter) < 32 or 127 <= ord(letter) < 160 or letter in "\u2028\u202e" for letter in line)
    entry: dict[str, Any] = json.loads(line)
    return entry


def test_a_record_as_json_is_one_object_with_nothing_raw_in_it() -> None:
    assert _entry(msg="%s is %d", args=("a", 1)) == {
        "time": "2023-11-14T22:13:20.500Z",
        "level": "ERROR",
        "logger": "tipbench.x",
        "message": "a is 1",
    }
    hostile = 'a\n{"level": "CRITICAL"}\x1b[2J\u202e\u2028\x85\ud800\x00'
    assert _entry(msg=hostile)["message"] == hostile
    try:
        raise RuntimeError(hostile)
    except RuntimeError:
        entry = _entry(msg="went wrong", exc_info=sys.exc_info())
    assert entry["message"] == "went wrong"
    assert entry["exception"].startswith("Traceback (most recent call last):\n")
    assert entry["exception"].endswith(f"RuntimeError: {hostile}")


def test_a_request_as_json_has_fields(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tipbench.access")
    caplog.handler.setFormatter(JsonFormatter())
    site.call("POST", "/api/echo?token=in-the-query", {**site.bearer(), "x-request-id": "abc.1"}, b"x")
    entry = json.loads(caplog.text.splitlines()[-1])
    duration = entry.pop("duration_ms")
    assert 0 < duration < 60_000
    assert entry.pop("time")[-1] == "Z"
    assert entry.pop("message").startswith("POST /api/echo 200 ")
    assert entry == {
        "level": "INFO",
        "logger": "tipbench.access",
        "request_id": "abc.1",
        "method": "POST",
        "path": "/api/echo",
        "status": 200,
    }


@pytest.mark.parametrize("given", ["a", "0af7651916cd43dd8448eb211c80319c", "A-b_c.9", "x" * 64])
def test_a_well_formed_id_is_the_request_s(site: Site, given: str) -> None:
    answer = site.call("GET", "/health", {"x-request-id": given})
    assert answer.headers.getlist("x-request-id") == [given]


@pytest.mark.parametrize(
    "given", [[], [""], ["a b"], ["a\x1b[2J"], ["\xe9"], ["x" * 65], ["a", "b"], ["a,b"], ["<script>"], ["a\r"]]
)
def test_any_other_request_gets_an_id_of_its_own(site: Site, given: list[str]) -> None:
    answers = [Caller(site.app, asked_as="")("GET", "/health", [("x-request-id", one) for one in given]) for _ in "12"]
    first, second = (answer.headers.getlist("x-request-id") for answer in answers)
    assert re.fullmatch("[0-9a-f]{16}", first[0])
    assert len(first) == 1
    assert first != second


def test_refusals_and_errors_have_ids_too(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("x")

    site.app.add_api_route("/api/fails", fail)
    for path, headers in (("/api/things", {}), ("/api/none", site.bearer()), ("/api/fails", site.bearer())):
        answer = site.call("GET", path, {**headers, "x-request-id": "id-7"})
        assert answer.status >= 400
        assert answer.headers["x-request-id"] == "id-7"
    assert answer.error["message"].endswith("the server's log has it under id-7")
    assert "id-7: GET /api/fails went wrong" in caplog.messages


def test_the_format_is_a_setting() -> None:
    assert log_config("json")["formatters"]["line"] == {"()": JsonFormatter}
    assert Settings({}).log_format == "text"
    assert Settings({"TIPBENCH_LOG_FORMAT": "json"}).log_format == "json"
    with pytest.raises(InvalidInput, match="TIPBENCH_LOG_FORMAT must be text or json; it is 'xml'"):
        _ = Settings({"TIPBENCH_LOG_FORMAT": "xml"}).log_format
