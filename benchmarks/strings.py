"""Lists every string that a user may read, and counts those that changed since a commit.

    python -m benchmarks.strings                 # all of them, by file
    python -m benchmarks.strings --since COMMIT  # how many are new or gone since then, and which

A string counts if it has at least two words: literals in the source (messages, help texts, texts of pages), docstrings
that are published (commands, and the API's description), and the text of templates and scripts. SQL and all other
docstrings are left out.
"""

import argparse
import ast
import re
import subprocess
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_SOURCE = "src/tipbench"
_TWO_WORDS = re.compile(r"[A-Za-z’'…]{2,}[,.;:]? +[A-Za-z‘'“(]{1,}")
_SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|ALTER|BEGIN|WITH|FROM|WHERE|DROP|LOCK|SET) ")
_PUBLISHED = ("cli/", "server/api/", "recommender/service/")
_JINJA = re.compile(r"{%.*?%}|{#.*?#}", re.DOTALL)
_SCRIPT_STRING = re.compile(r"\"([^\"\n]+)\"|`([^`\n]+)`")
_ATTRIBUTES = ("aria-label", "title", "placeholder", "alt")


def strings_of(path: str, text: str) -> Iterator[str]:
    """Yield the strings of one file."""
    if path.endswith(".py"):
        yield from _python_strings(path, text)
    elif path.endswith(".html"):
        yield from _template_strings(text)
    elif path.endswith(".js") and ".min." not in path:
        yield from (first or second for first, second in _SCRIPT_STRING.findall(text))


def _python_strings(path: str, text: str) -> Iterator[str]:
    tree = ast.parse(text)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
        and not (path.startswith(_PUBLISHED) and _is_published(node))
    }
    inside: set[int] = set()
    for node in ast.walk(tree):
        if id(node) in inside or id(node) in docstrings:
            continue
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in ast.walk(node)}
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _is_published(node: ast.AST) -> bool:
    """Return whether users read this docstring: a command's, a route's, or that of a model in the API's description."""
    if isinstance(node, ast.ClassDef):
        return any(isinstance(base, ast.Name) and base.id.endswith("Model") for base in node.bases)
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data)

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if name in _ATTRIBUTES and value]


def _template_strings(text: str) -> list[str]:
    parser = _Texts()
    parser.feed(re.sub(r"{{.*?}}", "{}", _JINJA.sub("\n\n", text), flags=re.DOTALL))
    return [part for found in parser.found for part in found.split("\n\n")]


def readable(strings: Iterable[str]) -> list[str]:
    """Keep what a person may read, each with its spaces made single."""
    found = (" ".join(one.split()) for one in strings)
    return [one for one in found if _TWO_WORDS.search(one) and not _SQL.match(one)]


def _files(commit: str | None) -> dict[str, str]:
    if commit is None:
        paths = [path for path in (_ROOT / _SOURCE).rglob("*") if path.suffix in (".py", ".html", ".js")]
        return {str(path.relative_to(_ROOT / _SOURCE)): path.read_text() for path in paths}
    names = _git("ls-tree", "-r", "--name-only", commit, _SOURCE).splitlines()
    wanted = [name for name in names if name.endswith((".py", ".html", ".js"))]
    return {name.removeprefix(f"{_SOURCE}/"): _git("show", f"{commit}:{name}") for name in wanted}


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=_ROOT, capture_output=True, text=True, check=True).stdout


def _all(commit: str | None = None) -> dict[str, list[str]]:
    return {path: readable(strings_of(path, text)) for path, text in sorted(_files(commit).items())}


def main() -> None:
    """Print the strings, or what changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--since", metavar="COMMIT")
    parser.add_argument("--under", metavar="FOLDER", default="", help="only files under this folder of src/tipbench")
    given = parser.parse_args()
    now = {path: found for path, found in _all().items() if path.startswith(given.under)}
    if not given.since:
        for path, found in now.items():
            print(f"\n{path}" if found else "", *(f"  {one}" for one in found), sep="\n" if found else "")
        print(f"\n{sum(map(len, now.values()))} strings")
        return
    before = {one for path, found in _all(given.since).items() if path.startswith(given.under) for one in found}
    after = {one for found in now.values() for one in found}
    for one in sorted(after - before):
        print(f"+ {one}")
    for one in sorted(before - after):
        print(f"- {one}")
    new = f"{len(after - before)} of them new or changed since {given.since}"
    print(f"\n{len(after)} strings, {new}; {len(before - after)} gone")


if __name__ == "__main__":
    main()
