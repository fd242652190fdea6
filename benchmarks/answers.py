"""Ten experiments of different kinds, and the answer that each gives: in the terminal, as JSON and in the browser.

    python -m benchmarks.answers                     # answers at 80 columns, checked against the JSON
    python -m benchmarks.answers --pictures FOLDER   # and in a browser: 1280 and 375 px, light and dark, checked by axe

Texts and scores are made up, everything else is real: experiments are collected, judged blind and compared by tipbench.
Promises: terminal and JSON give the same answer; the first screen holds the answer and the first row; axe finds no
serious fault. A minute, with pictures four.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.axe import serious_faults
from tests.browser import opened_browser
from tests.integration.serving import TOKEN, serving

from benchmarks.parts.scratch import scratch_folders
from benchmarks.parts.table import out
from tipbench.bench.bench import Bench
from tipbench.bench.judge.apply import ApplyOptions
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.suites.load import load_suite
from tipbench.server.ui import urls

_TIPS = {  # made-up tips by how good they are
    5: ("Do {0} now, before anything else: it unblocks the rest.", "Set a 20 minute timer and finish {0} first."),
    4: ("Do {0} in the next free half hour.", "Hand {0} to a colleague before noon."),
    3: ("Make {0} your priority today.", "Group {0} with your other calls."),
    2: ("Remember to prioritise {0}.", "Stay focused on {0}."),
    1: ("{0} is important.", "Success comes to those who wait, also with {0}."),
}  # fmt: skip
_THINGS = ("the overdue call", "the open form", "the order", "the handover", "the invoice")


@dataclass(frozen=True)
class Kind:
    """An experiment: how good each model's tips are, and what became of it."""

    name: str
    models: Mapping[str, int]
    prompts: str = "v1"
    scenarios: int = 0
    noise: float = 0.6
    judge: Callable[["Kind", Bench], None] = field(default=lambda kind, bench: _judged(kind, bench))


class MadeUpJudge:
    """Scores a tip by how good it was made, give or take some noise, and anchors as agreed, unless it is careless."""

    def __init__(self, name: str, noise: float, careless: bool = False, strict: Sequence[str] = ()) -> None:
        self.identity = JudgeName(name, provisional=False)
        self._noise, self._careless, self._strict = noise, careless, strict
        self._anchors = {one.candidate: one.scores for one in load_suite("tip").anchors}

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        for item in file["items"]:
            agreed = self._anchors.get(item["candidate"])
            for criterion in item["scores"]:
                if agreed and not self._careless:
                    item["scores"][criterion] = agreed[criterion]
                else:
                    item["scores"][criterion] = self._given(item, criterion)
        return file

    def _given(self, item: Mapping[str, Any], criterion: str) -> int:
        candidate = item["candidate"]
        drawn = random.Random(
            f"{self.identity.name}/{candidate}/{item['scenario']}/{criterion}"
        )  # the same when repeated
        if self._careless:
            return drawn.randint(1, 5)
        made = next((level for level, texts in _TIPS.items() if _is_one_of(candidate, texts)), 3)
        if criterion in self._strict:
            made = 6 - made
        return min(5, max(1, round(made + drawn.gauss(0, self._noise))))


def _is_one_of(candidate: str, texts: Sequence[str]) -> bool:
    return any(candidate == text.format(thing) for text in texts for thing in _THINGS)


def _judged(kind: Kind, bench: Bench) -> None:
    bench.judge(MadeUpJudge("lena", kind.noise))


def _half_judged(kind: Kind, bench: Bench) -> None:
    from tipbench.bench.judge.sample import BatchSize

    cells = len(kind.models) * len(kind.prompts.split(",")) * 8
    bench.judge(MadeUpJudge("lena", kind.noise), size=BatchSize(1, cells // 2))


def _on_hold(_kind: Kind, bench: Bench) -> None:
    bench.judge(MadeUpJudge("max", 0, careless=True))


def _disagreeing(kind: Kind, bench: Bench) -> None:
    bench.judge(MadeUpJudge("lena", kind.noise))
    reversed_judge = MadeUpJudge("max", kind.noise, strict=("relevance", "actionability", "tone"))
    bench.judge(reversed_judge, how=ApplyOptions(accept_drift="somebody: shown on purpose"))


def _by_rules(_kind: Kind, bench: Bench) -> None:
    bench.judge("lexical")


def _nobody(_kind: Kind, _bench: Bench) -> None:
    """Nothing is judged."""


KINDS = (
    Kind("clear-winner", {"ant": 5, "bee": 3, "cat": 2}),
    Kind("tie", {"ant": 4, "bee": 4, "cat": 4}, noise=0.2),
    Kind("two-rows", {"ant": 4, "bee": 3}, noise=1.5),
    Kind("one-scenario", {"ant": 5, "bee": 3, "cat": 2}, scenarios=1),
    Kind("all-failed", {"ant": 0, "bee": 0}, judge=_nobody),
    Kind("half-judged", {"ant": 4, "bee": 3}, prompts="v1,v2-mentor", noise=1.5, judge=_half_judged),
    Kind("on-hold", {"ant": 5, "bee": 3}, judge=_on_hold),
    Kind("disagreeing", {"ant": 4, "bee": 3, "cat": 2}, judge=_disagreeing),
    Kind("provisional", {"ant": 5, "bee": 3}, judge=_by_rules),
    Kind("200-rows", {f"m{number:02}": 1 + number % 5 for number in range(67)}, prompts="v1,v2-mentor,v3-few-shot"),
)  # fmt: skip


def make(kind: Kind, folder: Path) -> None:
    """Collect and judge one experiment in the folder's store; models are scripts in the current folder."""
    for model, level in kind.models.items():
        _script(Path(f"{kind.name}-{model}.yaml"), level)
    models = ",".join(f"scripted/{kind.name}-{model}.yaml" for model in kind.models)
    store = f"sqlite:///{folder / 'mlflow.db'}"
    with Bench(f"tip-bench-{kind.name}", mlflow_url=store) as bench:
        bench.collect(models=models, prompts=kind.prompts, n_scenarios=kind.scenarios, n_tips=2)
        kind.judge(kind, bench)


def _script(path: Path, level: int) -> None:
    rules: list[dict[str, str]]
    if level:
        tips = [text.format(thing) for thing in _THINGS[:2] for text in _TIPS[level]][:2]
        others = [text.format(thing) for thing in _THINGS[2:4] for text in _TIPS[max(1, level - 1)]][:2]
        rules = [{"when": "evening", "answer": json.dumps(others)}, {"answer": json.dumps(tips)}]
    else:
        rules = [{"fail": "the model ran out of memory"}]
    path.write_text(json.dumps({"parameters": 1_000_000_000, "rules": rules}))


def terminal(kind: Kind, store: str, *flags: str, columns: str = "80") -> str:
    """Run `tipbench compare` as a user does, in a terminal of 80 columns."""
    command = [
        sys.executable,
        "-m",
        "tipbench",
        "compare",
        "--experiment",
        f"tip-bench-{kind.name}",
        "--mlflow-url",
        store,
    ]
    done = subprocess.run(
        [*command, *flags], capture_output=True, text=True, env={**os.environ, "COLUMNS": columns}, check=False
    )
    return done.stdout or done.stderr


def main() -> int:
    """Make the experiments and show their answers; return how many promises were broken."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    pictures = given.pictures.absolute() if given.pictures else None
    broken: list[str] = []
    with scratch_folders() as make_folder:
        folder = make_folder()
        os.environ["TIPBENCH_HOME"] = str(folder / "home")
        os.chdir(folder)
        store = f"sqlite:///{folder / 'mlflow.db'}"
        for kind in KINDS:
            make(kind, folder)
            broken += _show(kind, store)
        if pictures:
            broken += _picture_all(store, folder / "home", pictures)
    for one in broken:
        out.print(f"BROKEN: {one}", style="red")
    return len(broken)


def _show(kind: Kind, store: str) -> list[str]:
    """Print the answer as the terminal has it, and the JSON's; return what contradicts."""
    shown = terminal(kind, store)
    answer = json.loads(terminal(kind, store, "--format", "json"))["answer"]
    out.print(f"── {kind.name} " + "─" * 40, style="bold")
    lines = shown.splitlines()
    out.print("\n".join(lines[:14] + ([f"… {len(lines) - 14} more lines"] if len(lines) > 14 else [])), soft_wrap=True)
    brief = {key: answer[key] for key in ("verdict", "expected_loss", "next")}
    out.print(f"JSON: {json.dumps(brief, ensure_ascii=False)}\n", style="dim", soft_wrap=True)
    found = []
    if " ".join(answer["says"].split()) not in " ".join(shown.split()):
        found.append(f"{kind.name}: the terminal does not say what the JSON says")
    table = [line for line in lines if "─" in line or "━" in line]
    if any(len(line) > 80 for line in table):
        found.append(f"{kind.name}: the table is wider than 80 columns")
    return found


# The browser


_FIRST_SCREEN = """
() => {
  const inside = (selector) => {
    const found = document.querySelector(selector);
    if (!found) return null;
    const box = found.getBoundingClientRect();
    return box.top >= 0 && box.bottom <= innerHeight;
  };
  return {answer: inside(".answer .lead"), row: inside("#leaderboard tbody tr, #leaderboard .empty")};
}
"""


def _picture_all(store: str, home: Path, folder: Path) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    broken = []
    with serving("--mlflow-url", store, TIPBENCH_HOME=str(home)) as served, opened_browser() as browser:
        for width, height, scheme in (
            (1280, 800, "light"),
            (375, 800, "dark"),
            (1280, 800, "dark"),
            (375, 800, "light"),
        ):
            context = browser.new_context(
                base_url=served.url,
                viewport={"width": width, "height": height},
                color_scheme="dark" if scheme == "dark" else "light",
            )
            page = context.new_page()
            page.goto("/login")
            page.get_by_label("Token").fill(TOKEN)
            page.keyboard.press("Enter")
            page.get_by_role("button", name="Log out").wait_for()
            paths = {kind.name: urls.leaderboard(f"tip-bench-{kind.name}") for kind in KINDS} | _PAGES
            for name, path in paths.items():
                page.goto(path)
                page.wait_for_load_state("networkidle")
                page.screenshot(path=folder / f"{name}-{width}-{scheme}.png")
                where = f"{name} at {width} px, {scheme}"
                if name not in _PAGES:
                    seen = page.evaluate(_FIRST_SCREEN)
                    broken += [
                        f"{where}: the {what} is not on the first screen"
                        for what, fits in seen.items()
                        if fits is False
                    ]
                broken += [f"{where}: {fault}" for fault in serious_faults(page)]
            context.close()
    out.print(f"Pictures are in {folder}.")
    return broken


_PAGES = {
    "experiments": "/experiments",
    "jobs": "/jobs",
    "judging": "/judging",
    "judges": "/judges",
    "recommender": "/recommender",
    "simulations": "/recommender/simulations",
    "gates": "/recommender/gates",
    "replays": "/recommender/replays",
    "shadows": "/recommender/shadows",
    "promotions": "/recommender/promotions",
}


if __name__ == "__main__":
    sys.exit(main())
