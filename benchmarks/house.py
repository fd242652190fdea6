"""The shape of the code at two revisions, side by side: files, layers, copies of the same, and how long commands take.

    python -m benchmarks.house ce68dc5            # against the working tree
    python -m benchmarks.house ce68dc5 --timings  # and the commands' times, medians of five in turn

Takes a minute; with --timings some five.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tarfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from statistics import median

from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import out, show

ROOT = Path(__file__).parents[1]
ROUNDS = 5
MOST = 1.1  # times as long as before
_MANY = 5  # parameters
_LONG = 6  # lines of a function that counts as a copy of another
_CELL = """
import sys, threading
seen = set()
def note(frame, event, _):
    name = frame.f_globals.get("__name__", "")
    if name.startswith("tipbench") and frame.f_code.co_name != "<module>":
        seen.add(name)
sys.setprofile(note); threading.setprofile(note)
from tipbench.cli.main import run
def main(words):
    try: run(words)
    except SystemExit: pass
common = ["--experiment", "x", "--mlflow-url", "sqlite:///m.db"]
main(["collect", "--models", "scripted/a", "--prompts", "v1", "--n-scenarios", "1", *common])
main(["judge", "--run", "lexical", *common])
main(["compare", *common])
sys.setprofile(None)
print(len(seen), file=open("modules", "w"))
"""
_LEARN = """
import time, tempfile
from pathlib import Path
try:
    from tipbench.recommender import Candidate, Context, DecisionLog, FileStore, Recommender, Request, Reward, SERVED
except ImportError:
    from tipbench.bandit import Candidate, Context, DecisionLog, FileStore, Recommender, Request, Reward, SERVED
folder = Path(tempfile.mkdtemp())
log, store = DecisionLog(folder / "decisions", time.time), FileStore(folder / "state", durable=False)
recommender = Recommender(SERVED, "egreedy", store, log, time.time)
tips = tuple(Candidate(id=f"t{n}", category="focus") for n in range(10))
for number in range(400):
    event = f"e{number}"
    asked = Request(user_id="u1", event_id=event, candidates=tips, context=Context(hour=9.0, focus_category="focus"))
    recommender.score("egreedy", asked)
    recommender.reward("egreedy", Reward(user_id="u1", event_id=event, reward=0.5))
"""


def extracted(revision: str, folder: Path) -> Path:
    """The tree of a revision; of the working tree without one."""
    if not revision:
        return ROOT
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", revision], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def functions(tree: Path) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    for path in sorted((tree / "src").rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node, source


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = node.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def shape(node: ast.AST) -> str:
    """A function without the names that it uses: two of one shape do the same to different things."""
    text = ast.dump(ast.Module(body=list(getattr(node, "body", [])), type_ignores=[]))
    return re.sub(r"(id|attr|arg|name)='[^']*'|value='[^']*'", "", text)


def is_declaration(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A method of an interface: a docstring and three dots."""
    return all(isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) for one in node.body)


def near_duplicates(tree: Path) -> int:
    shapes = Counter(
        shape(node)
        for node, _ in functions(tree)
        if (node.end_lineno or 0) - node.body[0].lineno + 1 >= _LONG and not is_declaration(node)
    )
    return sum(count * (count - 1) // 2 for count in shapes.values())


def found(tree: Path, pattern: str) -> int:
    texts = (path.read_text(encoding="utf-8") for path in (tree / "src").rglob("*.py"))
    return sum(len(re.findall(pattern, text)) for text in texts)


def layers(tree: Path) -> str:
    settings = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))
    return " + ".join(str(len(one["layers"])) for one in settings["tool"]["importlinter"]["contracts"])


def run(tree: Path, folder: Path, *words: str) -> float:
    """The seconds that a command takes, as a user sees it."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "TIPBENCH_HOME": str(folder / "home")}
    started = time.perf_counter()
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    return time.perf_counter() - started


def modules_of_a_cell(tree: Path, folder: Path) -> int:
    run(tree, folder, "-c", _CELL)
    return int((folder / "modules").read_text())


def shape_of(tree: Path, folder: Path) -> dict[str, object]:
    files = list((tree / "src").rglob("*.py"))
    return {
        "source files": len(files),
        "source lines": sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files),
        "modules that one cell passes": modules_of_a_cell(tree, folder),
        "layers": layers(tree),
        f"functions with more than {_MANY} parameters": sum(parameters(node) > _MANY for node, _ in functions(tree)),
        "renames of a file": found(tree, r"os\.replace\(|\.replace\((?:self\._)?(?:path|target)\)|\.rename\("),
        "flock": found(tree, r"fcntl\.flock\("),
        "Popen": found(tree, r"subprocess\.Popen\(\n?|subprocess\.Popen\([^)\]]"),
        "near-duplicate pairs of functions": near_duplicates(tree),
    }


def timed(trees: tuple[Path, Path], folder: Path) -> int:
    database = folder / "m.db"
    many = ["--experiment", "x", "--mlflow-url", f"sqlite:///{database}"]
    grid = ["--models", "scripted/a,scripted/b", "--n-scenarios", "8", "--repeats", "209"]
    run(trees[1], folder, "-m", "tipbench", "collect", *grid, *many)
    run(trees[1], folder, "-m", "tipbench", "judge", "--run", "lexical", *many)
    commands: dict[str, Callable[[Path], float]] = {
        "--help": lambda tree: run(tree, folder, "-m", "tipbench", "--help"),
        "collect --dry-run": lambda tree: run(tree, folder, "-m", "tipbench", "collect", "--dry-run", *grid, *many),
        "compare, 10,032 runs": lambda tree: run(tree, folder, "-m", "tipbench", "compare", *many),
        "choose and learn, 400 times": lambda tree: run(tree, folder, "-c", _LEARN),
    }
    rows, slow = [], 0
    for name, command in commands.items():
        before, after = zip(*((command(trees[0]), command(trees[1])) for _ in range(ROUNDS)), strict=True)
        ratio = median(after) / median(before)
        slow += ratio > MOST
        rows.append((name, f"{median(before):.3f}", f"{median(after):.3f}", f"{ratio:.2f}"))
    show("seconds, median of five in turn", ("command", "before", "after", "ratio"), rows)
    return slow


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="a revision")
    parser.add_argument("--timings", action="store_true")
    given = parser.parse_args()
    with scratch_folders() as new_folder:
        trees = extracted(given.before, new_folder()), extracted("", new_folder())
        shapes = [shape_of(tree, new_folder()) for tree in trees]
        rows = [(name, str(shapes[0][name]), str(shapes[1][name])) for name in shapes[0]]
        show(f"{given.before} and the working tree", ("", "before", "after"), rows)
        out.print(json.dumps(shapes), style="dim", soft_wrap=True)
        return int(bool(timed(trees, new_folder()))) if given.timings else 0


if __name__ == "__main__":
    sys.exit(main())
