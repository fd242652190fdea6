"""What a judge gives back is read as JSON, or refused in one sentence."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipbench.bench.judge.judges.prompt import read_reply
from tipbench.core.errors import JudgeFailed


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b"\n  "])
def test_an_object_is_read(start: bytes) -> None:
    assert read_reply(start + b'{"items": ["\xc3\xa4"]}\n', "it") == {"items": ["ä"]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "not JSON"),
        (b"done!", "not JSON"),
        (b'{"items": [', "not JSON"),
        (b'{"items": [], "items": []}', "'items' appears twice"),
        (b"[" * 100_000, "not JSON"),
        (b"1" * 10_000, "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[1]", "a JSON list, not an object"),
        (b"null", "a JSON NoneType, not an object"),
    ],
)
def test_anything_else_is_one_sentence(content: bytes, says: str) -> None:
    with pytest.raises(JudgeFailed, match=rf"^it answered with .*{says}.*; it must return the filled-in file$"):
        read_reply(content, "it")


@settings(deadline=None, max_examples=150)
@given(st.binary() | st.text().map(str.encode) | st.dictionaries(st.text(), st.none()).map(json.dumps).map(str.encode))
def test_whatever_comes_it_is_an_object_or_a_failed_judge(content: bytes) -> None:
    try:
        answer = read_reply(content, "it")
    except JudgeFailed as error:
        answer = {"said": str(error)}
    assert "\n" not in answer.get("said", "")
