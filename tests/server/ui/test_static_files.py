"""Every file that a page asks for is there, and nothing else of the package is."""

from pathlib import Path

import pytest

import tipbench.server.ui
from tests.server.ui.made_panel import MadeBoards, cells_of
from tests.server.ui.visits import page_at, visit
from tipbench.server.ui import urls

STATIC = Path(tipbench.server.ui.__file__).parent / "static"


def test_all_that_pages_load_is_there() -> None:
    client = visit(boards=MadeBoards({"e": cells_of()}))
    page = page_at(client, urls.leaderboard("e"))
    loaded = [
        node.attributes.get("href") or node.attributes.get("src") for node in [*page.all("link"), *page.all("script")]
    ]
    assert len(loaded) == 6
    kinds = [client.get(path or "").headers["content-type"].split(";")[0] for path in loaded]
    assert kinds == ["image/svg+xml", *["text/css"] * 3, *["text/javascript"] * 2]


def test_a_browser_that_has_a_file_is_not_sent_it_again() -> None:
    client = visit()
    for path in ("/static/app.css", "/static/foundation.css"):
        tag = client.get(path).headers["etag"]
        assert client.get(path, headers={"If-None-Match": tag}).status_code == 304


@pytest.mark.parametrize(
    "path", ["report.html", "page.py", "../pages.py", "%2e%2e/pages.py", "templates/base.html", ""]
)
def test_nothing_else_of_the_package_is_served(path: str) -> None:
    assert visit().get(f"/static/{path}").status_code == 404


def test_styles_and_scripts_load_nothing_from_elsewhere() -> None:
    for file in [*STATIC.glob("app.*"), STATIC / "icon.svg"]:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not [word for word in ("http:", "https:", "@import", "url(", "eval(", "innerHTML") if word in text], (
            file.name
        )


def test_htmx_has_its_licence_beside_it() -> None:
    assert "htmx 2.0.11" in (STATIC / "htmx-LICENSE.txt").read_text(encoding="utf-8")
