"""A decision on a real model, killed in the middle: the same decision, and nothing judged twice.

    python -m benchmarks.decide_kills

`tipbench decide` with the embedded model and two prompts, judged by a program with a known preference. It is started,
its home is copied once its order is drawn, and one copy runs through while the other is killed with SIGKILL three times
at random moments and started again each time. The judge writes down what it was asked. Promises: both end with the same
decision, account by account; no text is in two batches; no batch is judged again without a kill. Needs the weights of
smollm2:135m, which `make setup` installs. Five minutes.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import out
from tipbench.core.settings import Settings

KILLS = 3
# The judge knows the anchors, and gives a text the more the longer it is, so that what it prefers is no accident.
JUDGE = """
import json, os, sys
from tipbench.bench.suites.load import load_suite
known = {one.candidate: one.scores for one in load_suite("tip-pool").anchors}
file = json.load(sys.stdin)
asked = [[one["scenario"], one["candidate"]] for one in file["items"] if one["candidate"] not in known]
with open("asked.jsonl", "a") as log:
    log.write(json.dumps({"batch": file["batch"], "asked": asked}) + "\\n")
for item in file["items"]:
    agreed = known.get(item["candidate"])
    level = min(5, max(1, len(item["candidate"]) // 50))
    for name in item["scores"]:
        item["scores"][name] = agreed[name] if agreed else level
json.dump(file, sys.stdout)
"""


COMMAND = (
    *(sys.executable, "-m", "tipbench", "decide", "--models", "embedded/smollm2:135m", "--prompts", "v1,v3-few-shot"),
    *("--n-tips", "2", "--max-tokens", "120", "--experiment", "tip-pool-kills", "--judge", "command"),
    *("--good-enough", "0.1", "--format", "json"),
)


def main() -> int:
    """Run the decision with and without kills; return how many promises were broken."""
    weights = Settings().home / "weights"
    with scratch_folders() as make_folder:
        begun = make_folder() / "begun"
        (begun / "home").mkdir(parents=True)
        (begun / "judge.py").write_text(JUDGE)
        (begun / "home" / "weights").symlink_to(weights)
        _run(begun, budget=1)  # draws the order and generates the first rounds; the budget is too small to judge
        whole, killed = begun.parent / "whole", begun.parent / "killed"
        for copy in (whole, killed):
            shutil.copytree(begun, copy, symlinks=True)
        expected = _run(whole, budget=200)
        drawn = random.Random(1)
        for number in range(KILLS):
            seconds = drawn.uniform(5, 30)
            if not _kill_after(killed, seconds):
                out.print("BROKEN: it had ended before it could be killed", style="red")
                return 1
            out.print(f"killed {number + 1} of {KILLS} times, after {seconds:.0f} s", style="dim")
        return _check(expected, _run(killed, budget=200), killed)


def _environment(folder: Path) -> dict[str, str]:
    judge = f"{sys.executable} judge.py"
    return {**os.environ, "TIPBENCH_HOME": str(folder / "home"), "TIPBENCH_JUDGE_COMMAND": judge}


def _command(folder: Path) -> list[str]:
    """The store is named: a copied home remembers the one that it was copied from."""
    return [*COMMAND, "--mlflow-url", f"sqlite:///{folder / 'home' / 'mlflow.db'}"]


def _run(folder: Path, budget: int) -> dict[str, Any]:
    """Run the decision to its end and return what it says; raise if it was refused."""
    command = [*_command(folder), "--budget", str(budget)]
    done = subprocess.run(command, cwd=folder, env=_environment(folder), capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"it ended with status {done.returncode}: {done.stderr[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _kill_after(folder: Path, seconds: float) -> bool:
    """Go on with the decision and kill it; return whether it was still running."""
    process = subprocess.Popen(
        [*_command(folder), "--budget", "200"],
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    was_running = process.poll() is None
    if was_running:
        process.send_signal(signal.SIGKILL)
    process.wait()
    return was_running


def _check(expected: dict[str, Any], found: dict[str, Any], folder: Path) -> int:
    broken = []
    asked = [json.loads(line) for line in (folder / "asked.jsonl").read_text().splitlines()]
    batches = Counter(one["batch"] for one in asked)
    texts = Counter(
        tuple(pair) for one in {one["batch"]: one for one in asked}.values() for pair in set(map(tuple, one["asked"]))
    )
    if found != expected:
        broken.append(f"another decision than without kills: {found['says']} instead of {expected['says']}")
    if any(count > 1 for count in texts.values()):
        broken.append("a text is in two batches")
    if sum(count - 1 for count in batches.values()) > KILLS:
        broken.append("a batch was judged again without a kill")
    out.print(f"{found['says']}\n{found['judgements']} judgements on {found['items']} items in {len(batches)} batches.")
    for one in broken:
        out.print(f"BROKEN: {one}", style="red")
    return len(broken)


if __name__ == "__main__":
    sys.exit(main())
