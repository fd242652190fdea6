"""What a model says about itself is taken out of what a judge sees: its name, its makers, the prompt's version."""

import re
from collections.abc import Iterable

MARK = "[…]"
# Families by the names that models carry, with what such models call themselves and their makers.
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
# Said of themselves by models of every family.
_SELF = r"as an? (?:ai|artificial intelligence|(?:large )?language model)(?: (?:language )?(?:model|assistant))?,?"


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
