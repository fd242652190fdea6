"""Whether the service is there."""

import json

from tests.serving.conftest import Service
from tests.web.small_app import Caller
from tipbench import __version__


def test_everybody_may_ask(service: Service) -> None:
    answer = Caller(service.app)("GET", "/health")
    assert json.loads(answer.body) == {"status": "ok", "version": __version__, "live": "egreedy"}
