"""One shape for every error, and nothing in it that is not meant for whoever asked."""

import asyncio
import json
import logging
import re

import pytest
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from tests.web.small_app import ASKED_AS, BROWSER, Caller, Site
from tipbench.core.errors import (
    Conflict,
    EngineBusy,
    EngineUnreachable,
    GenerationFailed,
    InvalidInput,
    LockTaken,
    MissingExtra,
    NotFound,
    NothingStored,
    Problems,
    RunnerRefused,
    RunnerUnreachable,
    StateDamaged,
    StateRefused,
    StoredDataDamaged,
    StoreUnreachable,
    SuiteError,
    TrackingRefused,
    TrackingUnreachable,
)
from tipbench.web.errors import ERROR_RESPONSES, Errors, UnhandledErrors, install_errors

FORESEEN = [
    (InvalidInput("no such flag"), 422, "invalid_input"),
    (NotFound("no such job"), 404, "not_found"),
    (NothingStored("no results yet"), 404, "not_found"),
    (EngineUnreachable("no engine"), 503, "service_unavailable"),
    (EngineBusy("later", 7.0), 503, "service_unavailable"),
    (TrackingUnreachable("no MLflow"), 503, "service_unavailable"),
    (TrackingRefused("wrong host"), 503, "service_unavailable"),
    (RunnerUnreachable("no runner"), 503, "service_unavailable"),
    (RunnerRefused("who asks?"), 503, "service_unavailable"),
    (MissingExtra("install it"), 503, "service_unavailable"),
    (LockTaken("another one is at it"), 409, "conflict"),
    (Conflict("told otherwise"), 409, "conflict"),
    (StateRefused("other features"), 409, "conflict"),
    (StoredDataDamaged("run 7 is no whole cell"), 500, "internal_error"),
]


def _raising(error: Exception, site: Site) -> Caller:
    def fail() -> None:
        raise error

    site.app.add_api_route("/api/fails", fail)
    site.app.add_api_route("/fails", fail)
    return site.call


@pytest.mark.parametrize(("error", "status", "code"), FORESEEN, ids=lambda value: type(value).__name__)
def test_errors_of_ours_are_told_as_they_are(site: Site, error: Exception, status: int, code: str) -> None:
    answer = _raising(error, site)("GET", "/api/fails", site.bearer())
    assert answer.status == status
    assert answer.error == {"code": code, "message": str(error), "problems": []}
    assert answer.headers.get("retry-after") == ("7" if isinstance(error, EngineBusy) else None)


@pytest.mark.parametrize(
    "error",
    [TrackingUnreachable("no MLflow at http://mlflow:5000"), SuiteError("rubric.md of run 4f2a", ["line 3"])],
    ids=lambda error: type(error).__name__,
)
def test_judges_are_told_no_address_and_no_run(site: Site, error: Exception) -> None:
    def fail() -> None:
        raise error

    site.app.add_api_route("/api/judging/fails", fail)
    told = site.call("GET", "/api/judging/fails", site.bearer(site.judge))
    assert told.status in (422, 503)
    assert told.error["message"].startswith("this is not available right now")
    assert told.error["problems"] == []
    assert site.call("GET", "/api/judging/fails", site.bearer()).error["message"] == (
        error.headline if isinstance(error, Problems) else str(error)
    )


@pytest.mark.parametrize("kind", [Problems, SuiteError])
def test_every_problem_is_told(site: Site, kind: type[Problems]) -> None:
    answer = _raising(kind("does not fit:", ["first", "second"]), site)("GET", "/api/fails", site.bearer())
    assert answer.status == 422
    assert answer.error == {"code": "invalid_input", "message": "does not fit", "problems": ["first", "second"]}


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("with hunter2"),
        GenerationFailed("with hunter2"),
        ZeroDivisionError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_what_nobody_foresaw_stands_in_the_log_alone(
    site: Site, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    target = "/api/fails?token=in-the-query"
    answer = _raising(error, site)("GET", target, site.bearer())
    assert answer.status == 500
    told = re.fullmatch(
        r"something went wrong here; the server's log has it under (a-request-of-a-test)", answer.error["message"]
    )
    assert told
    logged = caplog.records[-1] if caplog.records[-1].levelno == logging.ERROR else caplog.records[-2]
    assert logged.getMessage() == f"{told[1]}: GET /api/fails went wrong"
    assert logged.exc_info
    assert logged.exc_info[1] is error
    assert "in-the-query" not in caplog.text
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (StateDamaged("/home/x/state/u1.json is odd"), 500, "the recommender's data for this request is damaged"),
        (OSError(28, "No space left on device", "/home/x/state"), 503, "No space left on device"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_where_states_are_stands_in_the_log_alone(
    site: Site, error: Exception, status: int, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    site.app.add_exception_handler(OSError, Errors().storage_error)
    answer = _raising(error, site)("GET", "/api/fails", site.bearer())
    assert answer.status == status
    assert told in answer.error["message"]
    assert "/home/x" not in answer.text
    assert "/home/x" in caplog.text


def test_an_error_in_the_gate_itself_is_answered_too(site: Site) -> None:
    site.access.tokens.close()
    answer = site.call("GET", "/api/things", site.bearer())
    assert answer.status == 500
    assert answer.error["code"] == "internal_error"
    assert answer.headers["content-security-policy"]


def test_half_an_answer_is_never_made_to_look_whole(site: Site) -> None:
    with pytest.raises(RuntimeError, match="the other half"):
        site.call("GET", "/api/half", site.bearer())


def test_who_has_gone_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def gone(scope: Scope, receive: Receive, send: Send) -> None:
        raise ClientDisconnect

    async def send(message: Message) -> None:
        raise AssertionError("nobody is there")

    async def receive() -> Message:
        raise AssertionError("nobody is there")

    asyncio.run(UnhandledErrors(gone, Errors())({"type": "http"}, receive, send))
    assert not caplog.records


def test_a_server_that_ends_says_so_to_whoever_still_waits(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[Message] = []

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(60)

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("nothing is read")

    async def end() -> None:
        scope = {"type": "http", "method": "POST", "path": "/api/x", "headers": []}
        asking = asyncio.create_task(UnhandledErrors(slow, Errors())(scope, receive, send))
        await asyncio.sleep(0)
        asking.cancel()
        await asking

    asyncio.run(end())
    assert sent[0]["status"] == 503
    assert "the server is shutting down" in json.loads(sent[1]["body"])["error"]["message"]
    assert not caplog.records


def test_why_states_can_t_be_had_is_for_the_log(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    error = StoreUnreachable("postgresql://inner.example/tips can't be used: no route")
    answer = _raising(error, site)("GET", "/api/fails", site.bearer())
    assert (answer.status, answer.error["code"]) == (503, "service_unavailable")
    assert answer.error["message"].startswith("states can't be read or written right now; try again later")
    assert "inner.example" not in answer.text
    assert [record.getMessage() for record in caplog.records] == [f"{ASKED_AS}: GET /api/fails: {error}"]


def test_methods_that_are_not_there_are_named(site: Site) -> None:
    answer = site.call("DELETE", "/api/things", site.bearer())
    assert answer.status == 405
    assert answer.error["code"] == "method_not_allowed"
    assert answer.headers["allow"]


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (HTTPException(404), 404, "there is nothing at /api/fails"),
        (HTTPException(405), 405, "GET is not supported for /api/fails"),
        (HTTPException(404, "there is no run 7"), 404, "there is no run 7"),
        (HTTPException(418), 418, "i'm a teapot"),
        (HTTPException(499, "odd"), 499, "odd"),
    ],
)
def test_statuses_have_their_sentence(site: Site, error: HTTPException, status: int, message: str) -> None:
    answer = _raising(error, site)("GET", "/api/fails", site.bearer())
    assert (answer.status, answer.error["message"]) == (status, message)


def test_a_status_that_is_no_error_stays_one(site: Site) -> None:
    answer = _raising(HTTPException(304, headers={"ETag": "x"}), site)("GET", "/api/fails", site.bearer())
    assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", "x")


def test_what_others_wrote_is_made_printable_and_short(site: Site) -> None:
    hostile = Problems("\x1b[2J\nline\u202e" + "x" * 2000, [f"p\x07{number}" for number in range(150)])
    error = _raising(hostile, site)("GET", "/api/fails", site.bearer()).error
    assert error["message"].startswith(r"\u001b[2J line\u202e")
    assert len(error["message"]) < 1100
    assert error["problems"][:2] == [r"p\u00070", r"p\u00071"]
    assert error["problems"][100:] == ["and 50 more"]


def test_people_get_a_page(site: Site) -> None:
    call = _raising(Problems("does not fit", ["first"]), site)
    page = call("GET", "/fails", {**BROWSER, **site.signed_in()})
    assert (page.status, page.text) == (422, "<p>422 for person: does not fit ['first']</p>")
    piece = call("GET", "/fails", {"hx-request": "true", "accept": "*/*", **site.signed_in()})
    assert piece.text == page.text
    assert call("GET", "/fails", site.bearer()).error["problems"] == ["first"]
    assert call("GET", "/api/fails", {**BROWSER, **site.signed_in()}).error["problems"] == ["first"]
    assert call("GET", "/unknown", {**BROWSER, **site.signed_in()}).text.startswith(
        "<p>404 for person: there is nothing"
    )
    refused = call("GET", "/forgotten", {**BROWSER, **site.signed_in(site.judge)})
    assert refused.text == "<p>403 for anna: this is for admins only []</p>"


def test_a_host_header_does_not_change_what_a_path_is(site: Site) -> None:
    call = _raising(InvalidInput("no"), site)
    for host in ("x/api/?", "[", "x#"):
        assert call("GET", "/fails", {**BROWSER, **site.signed_in(), "host": host}).text.startswith("<p>400")


def test_openapi_knows_the_shape() -> None:
    app = FastAPI(responses=ERROR_RESPONSES)
    install_errors(app)

    @app.get("/api/x")
    def x(limit: int) -> int:
        return limit

    document = app.openapi()
    answers = document["paths"]["/api/x"]["get"]["responses"]
    assert set(answers) == {"200", "400", "401", "403", "404", "409", "413", "422", "429", "500", "503"}
    refs = {json.dumps(answers[status]["content"]) for status in answers if status != "200"}
    assert refs == {'{"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}}'}
    assert set(document["components"]["schemas"]) == {"ErrorAnswer", "ErrorBody"}
