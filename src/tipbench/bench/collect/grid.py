"""The grid: every combination of model, prompt and scenario, model by model, and each cell's identity."""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, product

from tipbench.bench.options import Options
from tipbench.bench.records import Cell, GenerationRequest, Message, ModelInfo, Scenario
from tipbench.bench.suites.suite import Prompt, Suite
from tipbench.core.errors import InvalidInput
from tipbench.core.identity import data_digest, derived_seed

Messages = tuple[Message, ...]
_WORD = re.compile(r"\w+")
_MAX_RENDERED = 4_000_000  # characters of prompts that are kept, because every model and repeat is sent the same ones


class Grid:
    """All cells in model-major order, so that each model is loaded only once.

    Cells are created lazily: a grid of a hundred thousand cells takes no more memory than one of a hundred.
    """

    def __init__(
        self,
        options: Options,
        suite: Suite,
        models: Sequence[ModelInfo],
        only: Collection[tuple[str, str, str]] | None = None,
    ) -> None:
        """`only` restricts the grid to these cells: model, prompt and scenario."""
        self._options = options
        self._suite = suite
        self._models = models
        self._scenarios = suite.first_scenarios(options.n_scenarios)
        self._prompts = [suite.prompt(version) for version in options.prompt_names]
        self._only = only
        self._rendered: dict[tuple[str, str], Messages] = {}
        self._rendered_size = 0
        self._check_distinct()

    def __len__(self) -> int:
        if self._only is not None:
            return sum(1 for _ in self)
        return len(self._models) * len(self._prompts) * len(self._scenarios) * self._options.repeats

    def __iter__(self) -> Iterator[Cell]:
        for model, prompt, scenario in product(self._models, self._prompts, self._scenarios):
            if self._only is not None and (model.name, prompt.version, scenario.id) not in self._only:
                continue
            messages = self._messages(prompt, scenario)
            for repeat in range(self._options.repeats):
                yield self._cell(model, prompt, scenario, messages, repeat)

    def _messages(self, prompt: Prompt, scenario: Scenario) -> Messages:
        key = (prompt.version, scenario.id)
        found = self._rendered.get(key)
        if found is None:
            found = self._suite.messages(prompt, scenario, self._options.n_tips, self._options.diversity)
            size = sum(len(message.content) for message in found)
            if self._rendered_size + size <= _MAX_RENDERED:
                self._rendered[key] = found
                self._rendered_size += size
        return found

    def _cell(self, model: ModelInfo, prompt: Prompt, scenario: Scenario, messages: Messages, repeat: int) -> Cell:
        options = self._options
        request = GenerationRequest(
            model=model.name,
            messages=messages,
            temperature=options.temperature,
            seed=derived_seed(options.seed, scenario.id, repeat),
            max_tokens=options.max_tokens or self._suite.contract.max_tokens,
        )
        return Cell(
            key=_key(options, model, request, repeat),
            model=model,
            prompt=prompt.version,
            prompt_digest=prompt.digest,
            scenario=scenario,
            request=request,
            n_tips=options.n_tips,
            diversity=options.diversity,
            base_seed=options.seed,
            repeat=repeat,
        )

    def _check_distinct(self) -> None:
        """Raise InvalidInput if two cells make the same request.

        They would have the same key, so that one of them would be missing from the leaderboard. Scenarios and repeats
        differ by their seeds; only models and prompts can coincide.
        """
        for scenario in self._scenarios:
            first: dict[Messages, Prompt] = {}
            for prompt in self._prompts:
                same = first.setdefault(self._messages(prompt, scenario), prompt)
                if same is not prompt:
                    name = self._models[0].name
                    _refuse(f"{name} × {same.version} × {scenario.id}", f"{name} × {prompt.version} × {scenario.id}")
        known: dict[tuple[str, str], ModelInfo] = {}
        for model in self._models:
            duplicate = known.setdefault(_identity(model), model)
            if duplicate is not model:
                _refuse(duplicate.name, model.name)


def _refuse(one: str, other: str) -> None:
    raise InvalidInput(f"{one} and {other} send exactly the same requests to the model; leave one of them out")


def _identity(model: ModelInfo) -> tuple[str, str]:
    return model.engine, model.digest or model.name


def _key(options: Options, model: ModelInfo, request: GenerationRequest, repeat: int) -> str:
    """Return the digest of everything that affects the answer, and nothing else: no URL, no experiment, no rubric."""
    engine, identity = _identity(model)
    return data_digest(
        {
            "engine": engine,
            "model": identity,
            "messages": [[message.role, message.content] for message in request.messages],
            "n_tips": options.n_tips,
            "temperature": request.temperature,
            "diversity": options.diversity,
            "max_tokens": request.max_tokens,
            "seed": request.seed,
            "repeat": repeat,
        }
    )


# Diversity of a cell's candidates


def diversity(candidates: Sequence[str]) -> float | None:
    """Return the mean Jaccard distance between the word sets of all pairs of candidates.

    It is 0 if all have the same words and 1 if no two share a word; None for fewer than two candidates.
    """
    if len(candidates) < 2:
        return None
    words = [frozenset(_WORD.findall(candidate.casefold())) for candidate in candidates]
    distances = [1 - len(a & b) / len(a | b) if a | b else 0.0 for a, b in combinations(words, 2)]
    return sum(distances) / len(distances)
