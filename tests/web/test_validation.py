"""What is wrong with a request, in our words, with what was given if that can be shown."""

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from fastapi import Body, FastAPI, Header, Query
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field, field_validator

from tests.web.small_app import Caller
from tipbench.web.errors import install_errors
from tipbench.web.validation import problems_in


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Sent(BaseModel, extra="forbid"):
    count: int = Field(1, gt=0, lt=10)
    share: float = Field(0.5, ge=0, le=1, allow_inf_nan=False)
    on: bool = True
    name: str = Field("ab", min_length=2, max_length=5, pattern="^[a-z]*$")
    unload: Literal["call", "model"] = "call"
    colour: Colour = Colour.RED
    names: list[str] = Field([], max_length=1)
    inner: dict[str, int] = Field({}, min_length=0)
    nothing: None = None
    mlflow_url: int = 0
    api_key: int = 0
    even: int = 2

    @field_validator("even")
    @classmethod
    def _is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("should be even")
        return value


@pytest.fixture(scope="module")
def call() -> Caller:
    app = FastAPI()
    install_errors(app)

    @app.post("/api/send")
    def send(sent: Annotated[Sent, Body()]) -> None: ...

    @app.get("/api/ask/{number}")
    def ask(
        number: int,
        limit: Annotated[int, Query(le=500)] = 50,
        token: int = 0,
        x_count: Annotated[int, Header()] = 0,
    ) -> None: ...

    return Caller(app)


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("/api/ask/1?limit=501", "query.limit: should be at most 500 (given: 501)"),
        ("/api/ask/1?limit=many", "query.limit: should be a whole number (given: many)"),
        ("/api/ask/1?limit=", "query.limit: should be a whole number (given: '')"),
        ("/api/ask/one", "path.number: should be a whole number (given: one)"),
        ("/api/ask/1?token=hunter2", "query.token: should be a whole number"),
        ("/api/ask/1?limit=" + "9" * 5000, "query.limit: should be a whole number (given: " + "9" * 79 + "…)"),
        ("/api/ask/1?limit=%1b%5b2J", r"query.limit: should be a whole number (given: \u001b[2J)"),
        ("/api/ask/1?limit=http://me:pw@host", "query.limit: should be a whole number (given: http://host)"),
    ],
)
def test_what_is_wrong_in_an_address(call: Caller, target: str, problem: str) -> None:
    answer = call("GET", target)
    assert answer.status == 422
    assert answer.error == {"code": "invalid_input", "message": "the request can't be used", "problems": [problem]}


def test_headers_are_never_shown(call: Caller) -> None:
    assert call("GET", "/api/ask/1", {"x-count": "hunter2"}).error["problems"] == [
        "header.x-count: should be a whole number"
    ]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('{"count": 0}', "body.count: should be above 0 (given: 0)"),
        ('{"count": 10}', "body.count: should be below 10 (given: 10)"),
        ('{"count": 1.5}', "body.count: should be a whole number (given: 1.5)"),
        ('{"count": null}', "body.count: should be a whole number (given: null)"),
        ('{"count": "x"}', "body.count: should be a whole number (given: 'x')"),
        ('{"count": [1]}', "body.count: should be a whole number"),
        ('{"share": 2}', "body.share: should be at most 1.0 (given: 2)"),
        ('{"share": -1}', "body.share: should be at least 0.0 (given: -1)"),
        ('{"share": NaN}', "body.share: should be a finite number (given: nan)"),
        ('{"share": true}', None),
        ('{"share": "much"}', "body.share: should be a number (given: 'much')"),
        ('{"on": 7}', "body.on: should be true or false (given: 7)"),
        ('{"name": true}', "body.name: should be a text (given: true)"),
        ('{"name": "a"}', "body.name: should have at least 2 characters (given: 'a')"),
        ('{"name": "abcdef"}', "body.name: should have at most 5 characters (given: 'abcdef')"),
        ('{"name": "AB"}', "body.name: should be of the form ^[a-z]*$ (given: 'AB')"),
        ('{"unload": "never"}', "body.unload: should be 'call' or 'model' (given: 'never')"),
        ('{"colour": "green"}', "body.colour: should be 'red' or 'blue' (given: 'green')"),
        ('{"names": "x"}', "body.names: should be a list (given: 'x')"),
        ('{"names": ["x", "y"]}', "body.names: should have at most 1 entry (given: 2)"),
        ('{"inner": 1}', "body.inner: should be an object (given: 1)"),
        ('{"inner": {"a": "b"}}', "body.inner.a: should be a whole number (given: 'b')"),
        ('{"nothing": 1}', "body.nothing: should be null (given: 1)"),
        ('{"even": 3}', "body.even: should be even (given: 3)"),
        ('{"nmae": "x"}', "body.nmae: is not a known field (given: 'x')"),
        ('{"api_key": "hunter2"}', "body.api_key: should be a whole number"),
        (
            '{"mlflow_url": "http://me:hunter2@host/x"}',
            "body.mlflow_url: should be a whole number (given: 'http://host/x')",
        ),
        ("[]", "body: should be an object"),
        ("{", "body: is not JSON"),
        ("", "body: is missing"),
    ],
)
def test_what_is_wrong_in_a_body(call: Caller, body: str, problem: str | None) -> None:
    answer = call("POST", "/api/send", {"content-type": "application/json"}, body.encode())
    assert answer.status == (422 if problem else 200)
    if problem:
        assert answer.error["problems"] == [problem]
        assert "hunter2" not in answer.text


def test_everything_wrong_is_told_at_once(call: Caller) -> None:
    body = b'{"count": 0, "share": 2, "nmae": 1}'
    assert len(call("POST", "/api/send", {"content-type": "application/json"}, body).error["problems"]) == 3


def test_long_names_of_fields_are_cut(call: Caller) -> None:
    body = b'{"' + b"k" * 100_000 + b'": "' + b"v" * 100_000 + b'"}'
    (problem,) = call("POST", "/api/send", {"content-type": "application/json"}, body).error["problems"]
    assert len(problem) < 200


def test_a_kind_without_words_of_ours_keeps_its_own() -> None:
    error: dict[str, Any] = {
        "type": "url_parsing",
        "loc": ("body", "x"),
        "msg": "Input should be a valid URL",
        "input": 1,
    }
    assert problems_in([error]) == ["body.x: should be a valid URL (given: 1)"]


def test_a_body_of_another_kind_is_told_apart(call: Caller) -> None:
    answer = call("POST", "/api/send", {"content-type": "text/plain"}, b"hunter2")
    assert answer.status == 422
    assert "hunter2" not in answer.text


def test_an_error_that_says_nothing_of_its_input_is_told_without() -> None:
    error = RequestValidationError([{"type": "missing", "loc": ("query", "x"), "msg": "Field required", "input": None}])
    assert problems_in(error.errors()) == ["query.x: is missing"]
