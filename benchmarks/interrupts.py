"""One, two or three SIGINTs or SIGTERMs, 0 to 50 ms apart, at random moments, on every command that takes long.

    .venv/bin/python -m benchmarks.interrupts                    # 300 times, about eight minutes
    .venv/bin/python -m benchmarks.interrupts --times 30 --seed 3

collect (on scripted models and on a real Ollama), run, judge with each judge that runs by itself, sim, serve and
recommend serve. Each has to end within 10 s, with 130, or 0 where it had done its work or is a server; to leave no
process and no model in memory; and, given again, to come to the same end as one that was not interrupted.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
from tests.integration.filling import filled
from tests.integration.real_ollama.server import MODELS, OllamaServer, default_cache, unsupported_reason

from benchmarks.apply_kills import tipbench
from benchmarks.parts.collecting import environment
from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.stored import opened
from benchmarks.parts.table import out, show

EXPERIMENT = "tip-bench-interrupted"
SECONDS = 10.0
CELLS = 24  # 1 model × 3 prompts × 8 scenarios
OLLAMA_CELLS = 4
AT_ONCE = 2
_JUDGE = """
import json, sys, time
time.sleep(0.3)
file = json.load(sys.stdin)
for item in file["items"]:
    item["scores"] = dict.fromkeys(item["scores"], 3)
json.dump(file, sys.stdout)
"""


@dataclass(frozen=True)
class Kind:
    """A command, how long it takes undisturbed, and what must hold when it was given again."""

    words: tuple[str, ...]
    lasts_s: float  # within which it is interrupted
    settings: dict[str, str] = field(default_factory=dict)
    again: tuple[int, ...] = (0,)  # statuses of the same command, undisturbed; empty: it is not given again
    cells: int = CELLS
    judged: str = ""  # judges whose batches have to be there at the end
    alone: bool = False  # uses what only one can use at a time


class _Webhook(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(0.3)
        body = json.dumps(filled(asked["file"])).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with suppress(OSError):  # who asked was interrupted
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Silent."""


@contextmanager
def webhook() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Webhook)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def kinds(folder: Path, hook: str, ollama: OllamaServer | None) -> dict[str, Kind]:
    script, judge = folder / "slow.yaml", folder / "judge.py"
    script.write_text("parameters: 1000000\nlatency_s: 0.05\n")
    judge.write_text(_JUDGE)
    grid = ("--models", f"scripted/{script}")
    judging = ("judge", "--run")
    found = {
        "collect": Kind(("collect", *grid), 1.9),
        "run": Kind(("run", *grid, "--judge", "lexical"), 2.3, judged="lexical"),
        "judge lexical": Kind((*judging, "lexical"), 1.0, judged="lexical"),
        "judge command": Kind(
            (*judging, "command"),
            1.3,
            {"TIPBENCH_JUDGE_COMMAND": f"{sys.executable} {judge}"},
            (0, 1),  # a judge that gives 3 to everything is in quarantine
            judged="command",
        ),
        "judge webhook": Kind(
            (*judging, "webhook"),
            1.3,
            {"TIPBENCH_JUDGE_WEBHOOK": hook, "TIPBENCH_JUDGE_SECRET": "for-measuring"},
            judged="webhook",
        ),
        "judge model": Kind(
            (*judging, "model", "--limit", "2"),
            1.5,
            {"TIPBENCH_JUDGE_MODEL": f"scripted/{script}"},
            (0, 1, 2),  # what a scripted model says is no score
        ),
        "sim": Kind(("sim", "run", "--policies", "egreedy", "--seeds", "200"), 4.0, again=()),
        "serve": Kind(("serve", "--port", "0"), 2.5, again=()),
        "recommend serve": Kind(("recommend", "serve", "--port", "0"), 2.5, again=()),
    }
    if ollama:
        words = ("collect", "--models", next(iter(MODELS)), "--prompts", "v1", "--n-scenarios", str(OLLAMA_CELLS))
        more = ("--max-tokens", "16", "--n-tips", "1", "--ollama-url", ollama.url, "--unload", "model")
        found["collect on Ollama"] = Kind((*words, *more), 5.0, cells=OLLAMA_CELLS, alone=True)
    return found


def prepare(new_folder: Callable[[], Path], collected: tuple[str, ...]) -> dict[bool, Path]:
    """Two folders to copy: with an empty home, and with a collected experiment in its database."""
    empty, full = new_folder(), new_folder()
    tipbench(empty / "home", "collect", *collected[1:], *_store(empty))
    (empty / "m.db").unlink()
    shutil.copytree(empty, full, dirs_exist_ok=True)
    tipbench(full / "home", "collect", *collected[1:], *_store(full))
    return {False: empty, True: full}


def _store(folder: Path) -> tuple[str, ...]:
    return ("--experiment", EXPERIMENT, "--mlflow-url", f"sqlite:///{folder / 'm.db'}")


def once(name: str, kind: Kind, folder: Path, drawn: random.Random) -> list[str]:
    """What was wrong."""
    home = folder / "home"
    if kind.words[0] in ("collect", "run", "judge"):
        words = (*kind.words, *_store(folder))
    elif kind.words[0] == "serve":
        words = (*kind.words, *_store(folder)[2:])
    else:
        words = kind.words
    process = subprocess.Popen(
        [sys.executable, "-m", "tipbench", *words],
        env=environment(home) | kind.settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=(said := (folder / "said").open("w+")),
        start_new_session=True,
    )
    time.sleep(drawn.uniform(0.15, kind.lasts_s))
    times = drawn.randint(1, 3)
    for _ in range(times):
        if process.poll() is None:
            process.send_signal(drawn.choice((signal.SIGINT, signal.SIGTERM)))
        time.sleep(drawn.uniform(0, 0.05))
    wrong = []
    started = time.monotonic()
    try:
        process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        wrong.append(f"did not end within {SECONDS:g} s of {times} signals")
    took = time.monotonic() - started
    said.seek(0)
    text = said.read()
    said.close()
    # before Python runs a line of ours, a signal ends it as it ends any program
    allowed = (130, 0, -signal.SIGTERM, -signal.SIGINT)
    if not wrong and process.returncode not in allowed + kind.again:
        wrong.append(f"ended with {process.returncode} after {times} signals: {text[-300:]}")
    if "Traceback" in text and process.returncode not in (-signal.SIGTERM, -signal.SIGINT, 1):
        wrong.append(f"a traceback: {text[-600:]}")
    if left := _left_of(process.pid):
        wrong.append(f"left {left}")
    _took[name] = max(_took.get(name, 0.0), took)
    _interrupted[name] += process.returncode == 130
    return wrong


_took: dict[str, float] = {}
_interrupted: Counter[str] = Counter()


def _left_of(session: int) -> list[str]:
    """Processes of its session, a moment later."""
    deadline = time.monotonic() + 5
    while True:
        found = []
        for process in psutil.process_iter(["cmdline"]):
            try:
                if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(" ".join(process.info["cmdline"] or [])[:80])
            except (psutil.Error, OSError):
                continue
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def given_again(kind: Kind, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "tipbench", *kind.words, *_store(folder)],
        env=environment(folder / "home") | kind.settings,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    is_done = kind.judged and f"waits for judge '{kind.judged}'" in done.stderr.replace("\n", " ")
    if done.returncode not in kind.again and not is_done:
        return [f"given again it ended with {done.returncode}: {done.stderr[-300:]}"]
    with opened(f"sqlite:///{folder / 'm.db'}") as store:
        runs = list(store.runs(store.experiment(EXPERIMENT), {"tipbench.kind": "cell"}))
        keys = Counter(run.tags["tipbench.cell_key"] for run in runs)
    wrong = []
    if len(runs) != kind.cells or max(keys.values()) > 1:
        wrong.append(f"{len(runs)} runs of {len(keys)} cells, {kind.cells} wanted")
    if kind.judged and not all(f"judge/{kind.judged}/composite" in run.metrics for run in runs):
        wrong.append(f"not all cells are scored by {kind.judged}")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=300)
    parser.add_argument("--seed", type=int, default=7)
    given = parser.parse_args()
    reason = unsupported_reason()
    if reason:
        out.print(f"Without an Ollama: {reason}")
    ollama = None if reason else OllamaServer.start(default_cache())
    wrong: dict[str, list[str]] = {}
    counts: Counter[str] = Counter()
    alone = threading.Lock()
    try:
        with scratch_folders() as new_folder, webhook() as hook:
            tools = new_folder()
            all_kinds = kinds(tools, hook, ollama)
            templates = prepare(new_folder, all_kinds["collect"].words)
            names = list(all_kinds)

            def trial(number: int) -> None:
                name = names[number % len(names)]
                kind = all_kinds[name]
                folder = new_folder() / "trial"
                shutil.copytree(templates[kind.words[0] == "judge"], folder)
                found = []
                drawn = random.Random(f"{given.seed} {number}")
                with alone if kind.alone else threading.Lock():
                    found += once(name, kind, folder, drawn)
                    if kind.again:
                        found += given_again(kind, folder)
                    if kind.alone and ollama and (loaded := ollama.call("/api/ps")["models"]):
                        found.append(f"{len(loaded)} models stay loaded")
                counts[name] += 1
                wrong.setdefault(name, []).extend(found)
                for one in found:
                    out.print(f"{name} ({number}): {one}")

            with ThreadPoolExecutor(AT_ONCE) as pool:
                list(pool.map(trial, range(given.times)))
    finally:
        if ollama:
            ollama.stop()
    show(
        f"{given.times} times one to three signals",
        ("command", "times", "ended with 130", "longest until its end", "wrong"),
        [
            (name, str(counts[name]), str(_interrupted[name]), f"{_took[name]:.2f} s", str(len(wrong[name])))
            for name in counts
        ],
    )
    return 1 if any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
