"""The table of paths, and where a visitor may be sent after signing in."""

import re
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tipbench.web.paths import PathRules, is_unambiguous, local_path, longest_match, matches

# What turns up in attacks on paths, strung together at random.
_WORDS = [
    "//",
    "..",
    "%2e",
    "%2E%2e",
    "%2f",
    "%5c",
    "%00",
    "%0a",
    "%ff",
    "http:",
    "evil.example",
    "api",
    "static",
    "login",
]
PIECES = st.lists(st.sampled_from([*_WORDS, *"/\\.;?#@x \té\u2028"]), max_size=8)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("/health", "/health", True),
        ("/health", "/health/", False),
        ("/health", "/health/x", False),
        ("/health", "/healthy", False),
        ("/health", "/Health", False),
        ("/judging/*", "/judging", True),
        ("/judging/*", "/judging/", True),
        ("/judging/*", "/judging/x/y", True),
        ("/judging/*", "/judgings", False),
        ("/judging/*", "/JUDGING/x", False),
        ("/x/*/y", "/x/anything/y", True),
        ("/x/*/y", "/x/y", False),
        ("/x/*/y", "/x/a/b/y", False),
        ("/x/*/y", "/x/a/y/z", False),
        ("/", "/", True),
        ("/", "/x", False),
    ],
)
def test_a_pattern_covers_whole_segments_letter_for_letter(pattern: str, path: str, fits: bool) -> None:
    assert matches(pattern, path) == fits


def test_the_longest_pattern_says_the_most() -> None:
    assert longest_match("/a/b/c", ["/a/*", "/a/b/*", "/x/*"]) == "/a/b/*"
    assert longest_match("/z", ["/a/*"]) is None


def test_what_is_not_in_the_table_is_for_admins_alone() -> None:
    rules = PathRules()
    assert not [path for path in ("/", "/api/x", "/login", "/logout") if rules.is_open(path)]
    assert not [path for path in ("/", "/api/x", "/logout") if rules.is_for_judges(path)]


def _scope(raw: str, **more: Any) -> dict[str, Any]:
    return {"path": unquote(raw), "raw_path": raw.encode(), **more}


@pytest.mark.parametrize(
    "raw", ["/", "/api/x", "/api/runs/a%2Fb", "/x/", "/x%20y", "/%C3%A9", "/.well-known/x", "/a..b", "/%252e"]
)
def test_usual_paths_are_plain(raw: str) -> None:
    assert is_unambiguous(_scope(raw))


@pytest.mark.parametrize(
    "raw",
    [
        "//api/x",
        "/x//y",
        "/%2Fapi",
        "/api/../x",
        "/..",
        "/x/.",
        "/./x",
        "/static/%2e%2e/api",
        "/static/%2E%2E%2Fapi",
        "/static/..%2fapi",
        "/static\\..\\api",
        "/static%5c..",
        "/%00",
        "/x%0a",
        "/x%7f",
        "/x%ff",
        "",
        "x",
        "*",
    ],
)
def test_paths_that_somebody_might_read_in_another_way_are_not(raw: str) -> None:
    assert not is_unambiguous(_scope(raw))


def test_below_a_root_path_the_table_would_be_about_other_paths() -> None:
    assert not is_unambiguous(_scope("/static/api/things", root_path="/static"))


@settings(deadline=None, max_examples=100)
@given(pieces=PIECES)
def test_a_plain_path_stays_where_it_is_when_it_is_resolved(pieces: list[str]) -> None:
    raw = "".join(pieces)
    if not is_unambiguous(_scope(raw.encode("utf-8").decode("latin-1"))):
        return
    path = unquote(raw)
    resolved = urljoin("http://here.example", path.split("?")[0].split("#")[0])
    assert urlsplit(resolved).netloc == "here.example"
    for prefix in ("/api", "/static", "/x", "/login"):
        assert path.split("?")[0].split("#")[0].startswith(prefix) == urlsplit(resolved).path.startswith(prefix)


@pytest.mark.parametrize("wanted", ["/", "/experiments", "/x?y=1&z=%20", "/a//b", "/x#y", "/x?next=http://a"])
def test_paths_of_this_server_are_gone_to(wanted: str) -> None:
    assert local_path(wanted) == wanted


@pytest.mark.parametrize(
    "wanted",
    [
        "",
        "x",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "http://evil.example",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/\n/evil.example",
        " /x",
        "/x y",
        "/é",
        "/\x00",
        "/x\r\nSet-Cookie: a",
        "/login",
        "/login?next=/login",
        "/logout",
        "/" + "x" * 2000,
    ],
)
def test_anything_else_leads_to_the_front_page(wanted: str) -> None:
    assert local_path(wanted) == "/"


def _as_browsers_do(wanted: str) -> str:
    """The server that a browser would go to: it drops tabs and newlines, trims, and reads backslashes as slashes."""
    cleaned = re.sub("[\t\n\r]", "", wanted).strip("".join(map(chr, range(33)))).replace("\\", "/")
    return urlsplit(urljoin("http://here.example/login", cleaned)).netloc


@settings(deadline=None, max_examples=100)
@given(wanted=st.one_of(st.text(), PIECES.map("".join), PIECES.map(lambda pieces: "/" + "".join(pieces))))
@example(wanted="/\\evil.example")
@example(wanted="/\t/evil.example")
def test_nobody_is_sent_to_another_server(wanted: str) -> None:
    path = local_path(wanted)
    assert path in ("/", wanted)
    assert _as_browsers_do(path) == "here.example"
