"""The recipes of docs/architecture.md: each is carried out on a copy of the tree, touching only the named files."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = Path("src") / "tipbench"

ENGINE = '''
"""An engine that answers with a list of one."""

from tipbench.bench.engines.interface import IN_PROCESS
from tipbench.bench.records import Generation, GenerationRequest, ModelInfo, ResidentModel


class ParrotEngine:
    name = "parrot"
    address = IN_PROCESS
    default_concurrency = 1
    exclusive = False
    offered = True
    advice = "teach it a word"

    def describe(self, model: str) -> ModelInfo:
        return ModelInfo(model, self.name, parameters=1_000_000, parameters_from="metadata")

    def models(self) -> list[ModelInfo]:
        return [self.describe("parrot/polly")]

    def generate(self, request: GenerationRequest) -> Generation:
        return Generation(text='["Finish one thing."]', finish_reason="stop")

    def unload(self, model: str) -> None: ...

    def resident(self) -> list[ResidentModel]:
        return []

    def same_model(self, one: str, other: str) -> bool:
        return one == other

    def close(self) -> None: ...
'''
OPEN_ENGINE = """
def _parrot(options: Options, settings: Settings) -> Engine:
    from tipbench.bench.engines.parrot import ParrotEngine

    return ParrotEngine()


CATALOG: """
JUDGE = '''
"""A judge that likes everything equally."""

import copy
from typing import Any

from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.suites.rubric import Rubric


class EvenJudge:
    identity = JudgeName("even", provisional=True)

    def __init__(self, rubric: Rubric) -> None:
        self._rubric = rubric

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        filled = copy.deepcopy(file)
        for item in filled["items"]:
            item["scores"] = dict.fromkeys(item["scores"], 3)
        return filled
'''
OPEN_JUDGE = """
def _even(parts: JudgeParts, identity: str | None) -> Judge:
    from tipbench.bench.judge.judges.even import EvenJudge

    return EvenJudge(parts.rubric)


CATALOG: """
POLICY = '''
"""A policy that takes the candidates in turn."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tipbench.recommender.features.interface import Features, Floats
from tipbench.recommender.policies.choosing import draw_choice, read_counts
from tipbench.recommender.policies.interface import Choice, Generator
from tipbench.recommender.records import Request


@dataclass
class Counts:
    n: int = 0
    reward_sum: float = 0.0

    def as_data(self) -> dict[str, Any]:
        return {"n": self.n, "reward_sum": self.reward_sum}


@dataclass(frozen=True)
class RoundRobin:
    name: str
    features: Features

    @property
    def parameters(self) -> Mapping[str, float]:
        return {}

    def with_features(self, features: Features) -> "RoundRobin":
        return replace(self, name=f"{self.name} on {features.version}", features=features)

    def new_state(self) -> Counts:
        return Counts()

    def load_state(self, data: Mapping[str, Any]) -> Counts:
        return Counts(*read_counts(data))

    def epsilon(self, state: Counts) -> float:
        return 0.0

    def choose(self, state: Counts, request: Request, generator: Generator, at_ms: int) -> Choice:
        scores = np.zeros(len(request.candidates))
        scores[state.n % len(scores)] = 1.0
        return draw_choice(scores, 0.0, self.features.matrix(request), generator)

    def show(self, state: Counts, category: str, at_ms: int) -> None: ...

    def learn(self, state: Counts, seen: Floats, reward: float, at_ms: int) -> None:
        state.n += 1
        state.reward_sum += reward

    def explain(self, state: Counts) -> dict[str, Any]:
        return {}
'''
VIEW = '''
"""How many experiments there are."""

from tipbench.server.views.boards import Boards


def experiment_count(boards: Boards) -> int:
    return len(boards.experiments())
'''
PAGE = '''
"""How many experiments there are, on a page."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from tipbench.server.ui.pages import Parts, page
from tipbench.server.views.tally import experiment_count

MENU = ("/tally", "Tally")


def router(parts: Parts) -> APIRouter:
    pages = APIRouter(include_in_schema=False)

    @pages.get("/tally")
    def tally(request: Request) -> Response:
        return page(request, parts, "tally.html", count=experiment_count(parts.boards))

    return pages
'''
TEMPLATE = """
{% extends "base.html" %}
{% block main %}<h1>{{ count }} experiments</h1>{% endblock %}
"""
VISIT = """
import time
from starlette.testclient import TestClient
from tipbench.core.settings import Settings
from tipbench.server.app import admin_server
from tipbench.web.authentication import open_access

settings = Settings()
access = open_access(settings.home, time.time)
token = access.tokens.ensure_admin()
address = f"sqlite:///{settings.home / 'none.db'}"
with TestClient(admin_server(address, settings, access), base_url="http://localhost") as client:
    assert client.get("/tally", follow_redirects=False).status_code == 401
    page = client.get("/tally", headers={"authorization": f"Bearer {token}"}).text
    assert "<h1>0 experiments</h1>" in page
    assert '<a href="/tally" aria-current="page">Tally</a>' in page
"""


@dataclass
class Tree:
    """A copy of the code that can be run, and which of its files were touched."""

    folder: Path
    touched: set[str]

    def add(self, path: str, content: str) -> None:
        (self.folder / path).write_text(content.lstrip(), encoding="utf-8")
        self.touched.add(path)

    def change(self, path: str, *changes: tuple[str, str]) -> None:
        file = self.folder / path
        text = file.read_text(encoding="utf-8")
        for before, after in changes:
            assert text.count(before) == 1, f"{before!r} in {path}"
            text = text.replace(before, after)
        file.write_text(text, encoding="utf-8")
        self.touched.add(path)

    def run(self, *words: str) -> str:
        """What a Python of this tree prints; it has to end well."""
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("TIPBENCH", "MLFLOW"))},
            "PYTHONPATH": str(self.folder / "src"),
            "TIPBENCH_HOME": str(self.folder / "home"),
            "COLUMNS": "200",
        }
        done = subprocess.run(
            [sys.executable, *words], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def command(self, *words: str) -> str:
        return self.run("-m", "tipbench", *words)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    shutil.copytree(ROOT / CODE, tmp_path / CODE, ignore=shutil.ignore_patterns("__pycache__"))
    return Tree(tmp_path, set())


def named_files(what: str, name: str) -> set[str]:
    """The files that the recipe names."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    recipe = text.partition(f"**To add {what}**")[2].partition("\n\n")[0]
    return {path.replace("NAME", name) for path in re.findall(r"^- `(src/[^`]+)`", recipe, re.MULTILINE)}


def test_an_engine(tree: Tree) -> None:
    folder = "src/tipbench/bench/engines"
    tree.add(f"{folder}/parrot.py", ENGINE)
    tree.change(
        f"{folder}/catalog.py",
        ("\nCATALOG: ", OPEN_ENGINE),
        ('    "scripted"', '    "parrot": _parrot,\n    "scripted"'),
    )
    assert tree.touched == named_files("an engine", "parrot")
    assert "parrot/polly" in tree.command("doctor", "--ollama-url", "http://127.0.0.1:9")
    given = ("--models", "parrot/polly", "--prompts", "v1", "--n-scenarios", "2", "--experiment", "tip-bench-parrot")
    assert "2 cells" in tree.command("collect", *given, "--dry-run")


def test_a_judge(tree: Tree) -> None:
    folder = "src/tipbench/bench/judge/judges"
    tree.add(f"{folder}/even.py", JUDGE)
    tree.change(
        f"{folder}/catalog.py",
        ("\nCATALOG: ", OPEN_JUDGE),
        ('    "model": _model,', '    "model": _model,\n    "even": _even,'),
    )
    assert tree.touched == named_files("a judge", "even")
    given = ("--models", "scripted/a", "--prompts", "v1", "--n-scenarios", "2", "--experiment", "tip-bench-even")
    tree.command("run", *given, "--judge", "even")
    assert "3.00" in tree.command("compare", "--experiment", "tip-bench-even", "--verbose")
    assert "even" in tree.command("judge", "--help")


def test_a_policy(tree: Tree) -> None:
    folder = "src/tipbench/recommender/policies"
    tree.add(f"{folder}/round_robin.py", POLICY)
    tree.change(
        f"{folder}/catalog.py",
        ('EGreedy("egreedy", V1),', 'EGreedy("egreedy", V1),\n        RoundRobin("round-robin", V1),'),
        (
            "\n\nSERVED: ",
            "\nfrom tipbench.recommender.policies.round_robin import RoundRobin\n\nSERVED: ",
        ),
    )
    assert tree.touched == named_files("a policy", "round_robin")
    out = tree.command("sim", "run", "--policies", "egreedy,round-robin", "--seeds", "2", "--steps", "20")
    assert "round-robin" in out
    served = (
        "from tipbench.recommender.service.app import serving_server; from tipbench.core.settings import Settings; "
    )
    assert "/score/round-robin" in tree.run("-c", f"{served}print(list(serving_server(Settings()).openapi()['paths']))")


def test_a_page(tree: Tree) -> None:
    server = "src/tipbench/server"
    tree.add(f"{server}/views/tally.py", VIEW)
    tree.add(f"{server}/ui/tally.py", PAGE)
    tree.add(f"{server}/ui/templates/tally.html", TEMPLATE)
    tree.change(
        f"{server}/ui/routers.py",
        ("    simulations,\n    ", "    simulations,\n    tally,\n    "),
        ("gates, replays)", "gates, replays, tally)"),
    )
    assert tree.touched == named_files("a page", "tally")
    tree.run("-W", "ignore", "-c", VISIT)
