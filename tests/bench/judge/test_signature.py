"""Signatures: only who knows the secret makes them, for one body, at one time; a batch's key is good for it alone."""

import hashlib
import hmac
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.judge.judges.webhook import batch_key, sign, verify_signature
from tipbench.core.errors import InvalidInput

NOW = 1_760_000_000
BODY = b'{"items": []}'


def holds(**changes: Any) -> bool:
    asked: dict[str, Any] = {"secret": "s3cret", "timestamp": NOW, "body": BODY, "now": float(NOW), **changes}
    return verify_signature(given=changes.get("given", sign("s3cret", NOW, BODY)), **_without(asked, "given"))


def _without(data: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != name}


def test_the_signature_is_what_the_docs_say() -> None:
    told = hmac.new(b"s3cret", b"1760000000." + BODY, hashlib.sha256).hexdigest()
    assert sign("s3cret", NOW, BODY) == sign("s3cret", str(NOW), BODY) == f"sha256={told}"
    assert batch_key("s3cret", "5d0c") == hmac.new(b"s3cret", b"tipbench batch 5d0c", hashlib.sha256).hexdigest()


def test_what_was_signed_holds() -> None:
    assert holds()
    assert holds(timestamp=str(NOW))


@pytest.mark.parametrize(
    "changes",
    [
        {"body": BODY + b" "},
        {"secret": "other"},
        {"secret": ""},
        {"timestamp": NOW + 1},
        {"timestamp": "soon"},
        {"timestamp": f" {NOW}"},
        {"timestamp": "٣"},
        {"timestamp": ""},
        {"timestamp": -5},
        {"timestamp": "9" * 5000},
        {"given": ""},
        {"given": "sha256="},
        {"given": "sha256=ä\ud800"},
        {"given": sign("s3cret", NOW, BODY).removeprefix("sha256=")},
        {"given": sign("s3cret", NOW, BODY)[:-1]},
    ],
)
def test_what_was_not_signed_does_not(changes: dict[str, Any]) -> None:
    assert not holds(**changes)


@pytest.mark.parametrize(("late", "good"), [(0, True), (300, True), (301, False), (-300, True), (-301, False)])
def test_only_around_its_time(late: int, good: bool) -> None:
    assert holds(now=float(NOW + late)) is good
    assert holds(now=float(NOW + late), tolerance_s=1000)


def test_nobody_signs_without_a_secret() -> None:
    with pytest.raises(InvalidInput, match="set TIPBENCH_JUDGE_SECRET"):
        sign("", NOW, BODY)
    with pytest.raises(InvalidInput, match="set TIPBENCH_JUDGE_SECRET"):
        batch_key("", "b")


def test_a_batchs_key_is_good_for_that_batch_alone() -> None:
    key = batch_key("s3cret", "b1")
    signed = sign(key, NOW, BODY)
    assert verify_signature(key, NOW, BODY, signed, NOW)
    assert not verify_signature(batch_key("s3cret", "b2"), NOW, BODY, signed, NOW)
    assert not verify_signature("s3cret", NOW, BODY, signed, NOW)


@settings(max_examples=100)
@given(
    secret=st.text(min_size=1),
    body=st.binary(),
    other=st.binary(),
    given=st.text(),
    timestamp=st.text() | st.integers(),
)
def test_whatever_is_given_only_the_right_one_holds(
    secret: str, body: bytes, other: bytes, given: str, timestamp: str | int
) -> None:
    signed = sign(secret, NOW, body)
    assert verify_signature(secret, NOW, body, signed, NOW)
    assert verify_signature(secret, NOW, other, signed, NOW) is (other == body)
    assert not verify_signature(secret, timestamp, body, given, NOW)
