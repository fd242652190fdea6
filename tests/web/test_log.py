"""What a real server logs: no query, no header, no token, and nothing that a terminal would act on."""

import copy
import json
import logging

import pytest

from tests.web.small_app import Clock, Site
from tipbench.web.log import RateLimitedLogFilter, log_config


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
