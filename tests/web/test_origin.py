"""What browsers say about where a request comes from."""

from typing import Any

import pytest

from tipbench.web.headers import is_same_origin

HERE = ("host", "bench.example:8080")


def _scope(*headers: tuple[str, str], scheme: str = "http") -> dict[str, Any]:
    return {"type": "http", "scheme": scheme, "headers": [(name.encode(), value.encode()) for name, value in headers]}


@pytest.mark.parametrize(
    ("headers", "same"),
    [
        ([("sec-fetch-site", "same-origin")], True),
        ([("sec-fetch-site", "none")], False),
        ([("sec-fetch-site", "same-site")], False),
        ([("sec-fetch-site", "cross-site")], False),
        ([("sec-fetch-site", "cross-site"), ("origin", "http://bench.example:8080")], False),
        ([("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")], False),
        ([("origin", "http://bench.example:8080")], True),
        ([("origin", "http://BENCH.example:8080")], True),
        ([("origin", "https://bench.example:8080")], True),
        ([("origin", "http://bench.example")], False),
        ([("origin", "http://bench.example:8081")], False),
        ([("origin", "http://evil.example")], False),
        ([("origin", "http://bench.example:8080.evil.example")], False),
        ([("origin", "null")], False),
        ([("origin", "http://[")], False),
        ([("origin", "ftp://bench.example:8080")], False),
        ([("origin", "http://bench.example:8080"), ("origin", "http://evil.example")], False),
        ([("referer", "http://bench.example:8080/x")], False),
        ([], False),
    ],
)
def test_only_our_own_pages_are_ours(headers: list[tuple[str, str]], same: bool) -> None:
    assert is_same_origin(_scope(HERE, *headers)) == same


def test_a_page_without_encryption_is_another_origin() -> None:
    assert is_same_origin(_scope(HERE, ("origin", "https://bench.example:8080"), scheme="https"))
    assert not is_same_origin(_scope(HERE, ("origin", "http://bench.example:8080"), scheme="https"))


def test_without_a_host_nothing_is_the_same() -> None:
    assert not is_same_origin(_scope(("origin", "http://")))
