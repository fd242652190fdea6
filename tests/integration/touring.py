"""Goes through the server's pages in a real browser and looks at each whether it is still the page it should be."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Error, Page, expect

from tests.axe import serious_faults
from tests.browser import Watched
from tests.integration.serving import Served

_PATIENCE_S = 5.0
_ID = re.compile(r"/[0-9a-f]{8,}|/[0-9a-f-]{20,}")
_FILE = re.compile(r"\.\w+$")  # to be kept, no page
# What hostile texts do where they run is to set `hacked`, of their own window or of the one around it.
_REPORTS = """
Object.defineProperty(window, "hacked", {set: (by) => report(`hacked by ${by}`)});
document.addEventListener("securitypolicyviolation", (event) =>
  report(`against the policy: ${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
"""
_LOOK = """
() => {
  for (const folded of document.querySelectorAll("details.more-section, details.fold-mark")) folded.open = true;
  const foreign = "script, style, iframe, frame, object, embed, img, base, meta, link, body body";
  const runs = ({name, value}) => /^(on|style|srcdoc|hx-on)/i.test(name)
    || (/^(href|src|action|formaction|xlink:href)$/i.test(name) && /^\\s*(javascript|data|vbscript):/i.test(value));
  const elements = [...document.querySelectorAll("body *")];
  const alive = elements.filter((one) => one.matches(foreign) || [...one.attributes].some(runs));
  const comments = document.createTreeWalker(document.body, NodeFilter.SHOW_COMMENT);
  const count = (selector) => document.querySelectorAll(selector).length;
  return {
    title: document.title,
    alive: [...alive.map((one) => one.outerHTML.slice(0, 200)), ...(comments.nextNode() ? ["a comment"] : [])],
    landmarks: {header: count("body > header"), nav: count("body > header nav"), main: count("body > main")},
    wider: document.documentElement.scrollWidth - innerWidth,
    stretched: [...document.querySelectorAll("svg rect[width]")].filter((one) => one.getClientRects().length &&
      Math.abs(one.getBBox().width - Number(one.getAttribute("width"))) > 0.5).map((one) => one.outerHTML),
    text: document.body.innerText,
    links: [...document.links].map((link) => link.href),
  };
}
"""


class Seen(NamedTuple):
    """What a page shows, and where it leads to."""

    text: str
    links: list[str]


class Tourist:
    """Somebody who looks at every page. Without the policy, nothing but escaping is between a text and the page."""

    def __init__(self, browser: Browser, url: str, width: int, policy: bool, dark: bool = False) -> None:
        self.context = browser.new_context(
            base_url=url,
            viewport={"width": width, "height": 900},
            bypass_csp=not policy,
            color_scheme="dark" if dark else "light",
        )
        self.page: Page = self.context.new_page()
        self._origin = url
        self._watched = Watched(self.page)
        self.page.expose_function("report", lambda told: self._watched.troubles.append(told))
        self.page.add_init_script(_REPORTS)

    def log_in(self, token: str) -> None:
        self.page.goto("/login")
        self.page.get_by_label("Token").fill(token)
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("button", name="Log out")).to_be_visible()

    def visit(self, path: str) -> Seen:
        started = time.perf_counter()
        answer = self.page.goto(path)
        took = time.perf_counter() - started
        assert answer is not None, path
        assert answer.status == 200, f"{path} is answered with {answer.status}"
        assert took < _PATIENCE_S, f"{path} took {took:.1f} s"
        return self.look()

    def look(self) -> Seen:
        """At the page that is open: ours, whole, and nothing but ours alive in it."""
        found = self.page.evaluate(_LOOK)
        problems = [f"{kind}: {number}" for kind, number in found["landmarks"].items() if number != 1]
        if not found["title"].endswith(" – tipbench"):
            problems.append(f"its title is {found['title']!r}")
        return self._checked(found, problems)

    def look_at_file(self, path: Path) -> Seen:
        """One that was made for the browser."""
        self.page.goto(path.as_uri())
        return self._checked(self.page.evaluate(_LOOK), [])

    def _checked(self, found: Mapping[str, Any], problems: list[str]) -> Seen:
        problems += [f"alive: {element}" for element in found["alive"]]
        problems += [f"drawn with another width than it has: {element}" for element in found["stretched"][:3]]
        if found["wider"] > 0:
            problems.append(f"{found['wider']} px too wide")
        self.expect_no_trouble(problems)
        return Seen(found["text"], found["links"])

    def expect_no_trouble(self, problems: Sequence[str] = ()) -> None:
        """And none of these problems."""
        troubles = [*self._watched.troubles, *problems]
        assert not troubles, "\n".join([self.page.url, *troubles])

    def follow_all_links(self, start: str, most: int = 80) -> dict[str, str]:
        """What every page shows that can be reached; files to be kept are no pages, and MLflow's are not ours."""
        shown: dict[str, str] = {}
        waiting = [start]
        asked = {start}
        while waiting:
            assert len(shown) < most, f"more pages than {most}: {waiting}"
            path = waiting.pop(0)
            try:
                seen = self.visit(path)
            except Error as error:
                if "Download is starting" not in error.message:
                    raise
                continue
            shown[path] = seen.text
            new = [one for one in dict.fromkeys(map(self._path, seen.links)) if one and one not in asked]
            asked.update(new)
            waiting += new
        return shown

    def faults_by_kind(self, start: str) -> dict[str, list[str]]:
        """What axe finds on one page of each kind: of those that differ in their query or id alone, the first."""
        found: dict[str, list[str]] = {}
        waiting = [start]
        while waiting:
            path = waiting.pop(0)
            kind = _ID.sub("/…", path.partition("?")[0])
            if kind in found or _FILE.search(kind):
                continue
            links = self.visit(path).links
            found[kind] = serious_faults(self.page)
            waiting += [one for one in map(self._path, links) if one]
        return found

    def _path(self, link: str) -> str | None:
        """Of a page of ours, without the place on it."""
        parts = urlsplit(link)
        assert f"{parts.scheme}://{parts.netloc}" == self._origin, f"{self.page.url} leads to {link}"
        return None if parts.path.startswith("/mlflow") else parts._replace(scheme="", netloc="", fragment="").geturl()


@contextmanager
def touring(
    browser: Browser, served: Served, token: str, width: int, policy: bool = True, dark: bool = False
) -> Iterator[Tourist]:
    """Logged in; at the end once more without any trouble, since scripts may come late."""
    tourist = Tourist(browser, served.url, width, policy, dark)
    try:
        tourist.log_in(token)
        yield tourist
        tourist.expect_no_trouble()
    finally:
        tourist.context.close()
