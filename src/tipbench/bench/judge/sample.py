"""Which candidates, anchors and repeats go into a batch, so that a person gets through it in a sitting."""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

ANCHORS = 16  # a batch's; docs/decisions/0013 says what they can tell
REPEATS = 8
SECONDS_AN_ITEM = 45
_SITTING_S = 2 * 3600
_FEWEST_ANCHORS = 4
_Item = TypeVar("_Item")
MARK = "[…]"
_FAMILIES = {
    "qwen": ("qwen", "tongyi", "alibaba"),
    "gemma": ("gemma", "gemini", "google", "deepmind"),
    "llama": ("llama", "meta ai"),
    "smollm": ("smollm", "hugging face", "huggingface"),
    "phi": (r"phi-?", "microsoft"),
    "mistral": ("mistral", "mixtral"),
    "ministral": ("ministral", "mistral"),
    "deepseek": ("deepseek",),
    "granite": ("granite", "ibm"),
    "gpt": ("chatgpt", r"gpt-?", "openai"),
}
_SIZE = r"(?:[-.:]?\d(?:[\w.:-]*\w)?)?"  # as in qwen2.5-0.5B-Instruct
_SELF = r"as an? (?:ai|artificial intelligence|(?:large )?language model)(?: (?:language )?(?:model|assistant))?,?"


class BatchSize(NamedTuple):
    """How much of an experiment goes into a batch."""

    sample: int | None = None  # candidates of each cell; None: as many as fit into two hours
    limit: int | None = None  # candidates in all


WHAT_FITS = BatchSize()
EVERYTHING = BatchSize(sample=1_000_000)


def anchors_for(candidates: int) -> int:
    return min(ANCHORS, max(_FEWEST_ANCHORS, candidates))


def repeats_for(candidates: int) -> int:
    return min(REPEATS, candidates // 3)


def seconds_for(items: int) -> int:
    """About how long a person takes."""
    return items * SECONDS_AN_ITEM


def fitting_sample(candidates_by_cell: Sequence[int]) -> int:
    """The most candidates a cell that two hours leave time for; at least one."""
    most = max(candidates_by_cell, default=1)
    for sample in range(most, 1, -1):
        items = sum(min(sample, count) for count in candidates_by_cell)
        if seconds_for(items + anchors_for(items) + repeats_for(items)) <= _SITTING_S:
            return sample
    return 1


def sampled(key: str, seed: int, count: int, sample: int) -> list[int]:
    """The candidates of one cell. They depend on the cell and the seed alone: judges get the same ones."""
    return sorted(random.Random(f"{seed}/{key}").sample(range(count), min(sample, count)))


def limited(drawn: random.Random, cells: Mapping[str, Sequence[_Item]], limit: int | None) -> list[_Item]:
    """Whole cells, drawn until the limit is reached; a cell that does not fit any more is left for the next batch."""
    order = sorted(cells)
    if limit is not None:
        drawn.shuffle(order)
    taken: list[_Item] = []
    for key in order:
        if limit is None or len(taken) + len(cells[key]) <= limit:
            taken += cells[key]
    return taken


# Families by the names that models carry, with what such models call themselves and their makers.
# Said of themselves by models of every family.


# What a model says about itself is taken out of what a judge sees: its name, its makers, the prompt's version.


def families(model: str) -> frozenset[str]:
    """The families that a model's name tells of."""
    return frozenset(family for family in _FAMILIES if family in model.lower())


def families_shared(judge_model: str, candidate_models: Iterable[str]) -> frozenset[str]:
    """Families that the judge has in common with the models it judges: models tend to like their own kind."""
    return families(judge_model) & frozenset(family for model in candidate_models for family in families(model))


class Blindfold:
    """Marks, in a text, whatever would tell which of these models wrote it, by which prompt."""

    def __init__(self, models: Iterable[str], prompts: Iterable[str]) -> None:
        # "v1" and "calm" stand in many texts that don't speak of prompts.
        names = {prompt for prompt in prompts if len(prompt) > 3 and re.search(r"[\d_-]", prompt)}
        kin: set[str] = set()
        for model in models:
            bare = model.rpartition("/")[2]
            names |= {name for name in (model, bare, bare.partition(":")[0]) if len(name) > 2}
            kin |= {word for family in families(model) for word in _FAMILIES[family]}
        whole = [re.escape(name) for name in sorted(names, key=len, reverse=True)]
        named = "|".join([*whole, *sorted(kin)])
        tells = rf"(?:{named}){_SIZE}|{_SELF}" if named else _SELF
        self._tells = re.compile(rf"(?<!\w)(?:{tells})(?!\w)", re.IGNORECASE)

    def over(self, text: str) -> str:
        return self._tells.sub(MARK, text)
