"""The judge that is a model, with real weights: what hostile candidates can't do."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.bench.judge.judges.files import (
    CANDIDATES,
    CLEAR,
    a_file,
    among_hostile,
    batch_and_file,
)
from tipbench.bench.engines.embedded import DEFAULT_MODEL, EmbeddedEngine
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.judges.model import ModelJudge
from tipbench.bench.judge.verify import verify
from tipbench.bench.records import ModelInfo

NAME = JudgeName("model")


class SmallContext(EmbeddedEngine):
    """The real model in a context that is soon full, so that long candidates are read in seconds."""

    def describe(self, model: str) -> ModelInfo:
        return replace(super().describe(model), context_length=768)


@pytest.fixture(scope="module")
def real(weights_folder: Path) -> Iterator[EmbeddedEngine]:
    made = SmallContext(weights_folder)
    yield made
    made.close()


@pytest.fixture(scope="module")
def quiet(real: EmbeddedEngine) -> dict[str, Any]:
    """The file's scores without any hostile candidate."""
    return ModelJudge(CLEAR, DEFAULT_MODEL, real, NAME).score(a_file())


def test_a_real_models_scores_are_on_the_scale_and_it_leaves_memory(
    real: EmbeddedEngine, quiet: dict[str, Any]
) -> None:
    batch, _ = batch_and_file()
    assert len(verify(quiet, batch, CLEAR)) == 4
    assert real.resident() == []


def test_with_a_real_model_hostile_candidates_change_no_other_items_score(
    real: EmbeddedEngine, quiet: dict[str, Any]
) -> None:
    batch, file = among_hostile()
    filled = ModelJudge(CLEAR, DEFAULT_MODEL, real, NAME).score(file)
    alone = {item["slot"]: item["scores"] for item in quiet["items"]}
    assert {item["slot"]: item["scores"] for item in filled["items"] if item["slot"] in alone} == alone
    assert len(verify(filled, batch, CLEAR)) == 2 * len(CANDIDATES)
