"""Chooses candidates, anchors and repeats for a batch, sized so that a person can judge it in one sitting."""

import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from tipbench.bench.records import SECONDS_A_JUDGEMENT
from tipbench.bench.suites.anchors import ENOUGH_ANCHORS

ANCHORS = 16  # per batch; docs/decisions/0013 says how much drift they can detect
REPEATS = 8
FIRST_BATCH = 20  # items: the smallest batch with enough anchors
FEWEST_ITEMS = 5
SIZES = (FIRST_BATCH, 40, 80, 160)  # items that the judging page offers: from 15 minutes to two hours
_FEWEST_ANCHORS = 4
_Item = TypeVar("_Item")
REDACTED = "[…]"
# Model families by the names of models, with what such models call themselves and their makers.
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
# What models of every family say about themselves.
_AS_AN_AI = r"as an? (?:ai|artificial intelligence|(?:large )?language model)(?: (?:language )?(?:model|assistant))?,?"


class BatchSize(NamedTuple):
    """How much of an experiment goes into a batch."""

    sample: int = 1  # candidates per cell: evidence comes from more scenarios, not from more candidates of one
    limit: int | None = None  # candidates in total
    items: int | None = None  # in total, anchors and repeats counted in
    only: tuple[tuple[str, int], ...] = ()  # exactly these candidates, of a decision: run and number
    decision: str = ""  # the decision's id


class Mix(NamedTuple):
    """What a batch consists of."""

    candidates: int
    anchors: int
    repeats: int


EVERYTHING = BatchSize(sample=1_000_000)


def anchors_for(candidates: int) -> int:
    return min(ANCHORS, max(_FEWEST_ANCHORS, candidates))


def repeats_for(candidates: int) -> int:
    return min(REPEATS, candidates // 3)


def mix_for(items: int, is_new: bool, usable_anchors: int = ANCHORS) -> Mix:
    """Split a batch of this many items.

    A judge who is new to the rubric gets three anchors in five items, until there are enough to assess drift. Later at
    most a fifth of the items are anchors and repeats, because the drift check borrows from earlier batches.
    """
    if is_new:
        repeats = min(REPEATS, items // 10)
        anchors = min(ENOUGH_ANCHORS, 3 * items // 5, usable_anchors)
    else:
        repeats = min(REPEATS, items // 20)
        anchors = min(ANCHORS, items // 5 - items // 20, usable_anchors)
    return Mix(items - anchors - repeats, anchors, repeats)


def mix_around(candidates: int, is_new: bool, usable_anchors: int = ANCHORS) -> Mix:
    """Return the smallest batch that has room for all these candidates."""
    items = candidates
    while mix_for(items, is_new, usable_anchors).candidates < candidates:
        items += 1
    return mix_for(items, is_new, usable_anchors)._replace(candidates=candidates)


def fitting_mix(items: int, candidates: int, is_new: bool, usable_anchors: int = ANCHORS) -> Mix:
    """Split a batch of this many items; if there are fewer candidates than it has room for, a smaller batch."""
    while mix_for(items, is_new, usable_anchors).candidates > candidates:
        items -= 1
    return mix_for(items, is_new, usable_anchors)


def seconds_for(items: int) -> int:
    """Estimate how long a person takes for this many items."""
    return items * SECONDS_A_JUDGEMENT


def sample_candidates(key: str, seed: int, count: int, sample: int) -> list[int]:
    """Sample the candidates of one cell. Depends only on cell and seed, so that all judges get the same ones.

    A larger sample begins with the smaller one.
    """
    return random.Random(f"{seed}/{key}").sample(range(count), count)[:sample]


def take_layers(
    rng: random.Random, cells: Mapping[str, Sequence[tuple[int, _Item]]], limit: int | None, first: Collection[str] = ()
) -> list[_Item]:
    """Take one candidate of every cell before a second of any, up to the limit.

    A cell's candidates come with their number among all that a judge gets of it. Which cells are left out by the limit
    is drawn; those in `first` go before others.
    """
    order = sorted(cells)
    if limit is not None:
        rng.shuffle(order)
        order.sort(key=lambda key: key not in first)
    layered = sorted(
        ((number, rank, item) for rank, key in enumerate(order) for number, item in cells[key]),
        key=lambda one: one[:2],
    )
    return [item for _, _, item in layered][:limit]


# Redaction: what a model says about itself (its name, its makers, the prompt's version) is hidden from judges


def families(model: str) -> frozenset[str]:
    """Return the families that occur in a model's name."""
    return frozenset(family for family in _FAMILIES if family in model.lower())


def families_shared(judge_model: str, candidate_models: Iterable[str]) -> frozenset[str]:
    """Return the families that the judge shares with the models it judges: models tend to favour their own family."""
    return families(judge_model) & frozenset(family for model in candidate_models for family in families(model))


class Redactor:
    """Redacts anything in a text that would reveal which of these models wrote it, or with which prompt."""

    def __init__(self, models: Iterable[str], prompts: Iterable[str]) -> None:
        # "v1" and "calm" occur in many texts that aren't about prompts.
        names = {prompt for prompt in prompts if len(prompt) > 3 and re.search(r"[\d_-]", prompt)}
        family_names: set[str] = set()
        for model in models:
            bare = model.rpartition("/")[2]
            names |= {name for name in (model, bare, bare.partition(":")[0]) if len(name) > 2}
            family_names |= {word for family in families(model) for word in _FAMILIES[family]}
        escaped = [re.escape(name) for name in sorted(names, key=len, reverse=True)]
        named = "|".join([*escaped, *sorted(family_names)])
        revealing = rf"(?:{named}){_SIZE}|{_AS_AN_AI}" if named else _AS_AN_AI
        self._revealing = re.compile(rf"(?<!\w)(?:{revealing})(?!\w)", re.IGNORECASE)

    def redact(self, text: str) -> str:
        return self._revealing.sub(REDACTED, text)
