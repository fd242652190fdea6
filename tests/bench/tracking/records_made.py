"""Cells, answers and a rubric for tests of what is stored."""

from typing import Any

from tests.bench.engines.stand_in import a_request
from tipbench.bench.records import Answer, Cell, Failure, Generation, ModelInfo, RubricText, Scenario

RUBRIC = RubricText(
    "tip-v1",
    "rubric-digest",
    "# Rubric\n\nA 4 is a 4.\n",
    {"relevance": 1.0, "actionability": 1.0, "tone": 1.0, "format_ok": 0.0, "overlong": 1.0, "composite": 2.0},
)
MODEL = ModelInfo("qwen2.5:0.5b", "ollama", 494_032_768, "metadata", "model-digest", 397_821_319, "Q4_K_M", 32_768)
SCENARIO = Scenario("maya-morning", {"persona": "maya", "slot": "morning"}, {"name": "Maya"}, "Maya, 08:00")


def a_cell(**changes: Any) -> Cell:
    made: dict[str, Any] = {
        "key": "key-1",
        "model": MODEL,
        "prompt": "v3-few-shot",
        "prompt_digest": "prompt-digest",
        "scenario": SCENARIO,
        "request": a_request(MODEL.name, "For Maya."),
        "n_tips": 2,
        "diversity": True,
        "base_seed": 7,
        "repeat": 1,
    }
    return Cell(**{**made, **changes})


def an_answer(candidates: tuple[str, ...] = ("Close the door.", "Open ü 😀\x00\ud800 it."), **cell: Any) -> Answer:
    made = Generation("<think>Hm.</think>\x00" + "x" * 9_000, "stop", 80, 40, 0.5, 1.25)
    return Answer(a_cell(**cell), made, candidates, len(candidates) + 3, bool(candidates), "contract", 0.75)


def a_failure(reason: str = "Ollama answered 500: the runner died", **cell: Any) -> Failure:
    return Failure(a_cell(**cell), reason)
