"""The grid: every combination of model, prompt and scenario, model by model, and each cell's identity."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, product

from tipbench.bench.options import Options
from tipbench.bench.records import Cell, GenerationRequest, Message, ModelInfo, Scenario
from tipbench.bench.suites.suite import Prompt, Suite
from tipbench.core.errors import InvalidInput
from tipbench.core.identity import data_digest, derived_seed

Messages = tuple[Message, ...]
_WORD = re.compile(r"\w+")
_RENDERED_AT_ONCE = 32
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
        for model, prompt in product(self._models, self._prompts):
            scenarios = [one for one in self._scenarios if self._has(model, prompt, one)]
            for scenario, messages in zip(scenarios, self._messages(prompt, scenarios), strict=True):
                for repeat in range(self._options.repeats):
                    yield self._cell(model, prompt, scenario, messages, repeat)

    def _has(self, model: ModelInfo, prompt: Prompt, scenario: Scenario) -> bool:
        return self._only is None or (model.name, prompt.version, scenario.id) in self._only

    def _messages(self, prompt: Prompt, scenarios: Sequence[Scenario]) -> Iterator[Messages]:
        """Yield what is sent for each scenario; many are rendered at a time, because that is quicker."""
        for start in range(0, len(scenarios), _RENDERED_AT_ONCE):
            some = scenarios[start : start + _RENDERED_AT_ONCE]
            new = [one for one in some if (prompt.version, one.id) not in self._rendered]
            rendered = self._suite.messages(prompt, new, self._options.n_tips, self._options.diversity)
            fresh = {one.id: messages for one, messages in zip(new, rendered, strict=True)}
            self._keep(prompt, fresh)
            for scenario in some:
                yield fresh.get(scenario.id) or self._rendered[prompt.version, scenario.id]

    def _keep(self, prompt: Prompt, fresh: Mapping[str, Messages]) -> None:
        for scenario, messages in fresh.items():
            size = sum(len(message.content) for message in messages)
            if self._rendered_size + size <= _MAX_RENDERED:
                self._rendered[prompt.version, scenario] = messages
                self._rendered_size += size

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
        all_messages = zip(*(self._messages(prompt, self._scenarios) for prompt in self._prompts), strict=True)
        for scenario, by_prompt in zip(self._scenarios, all_messages, strict=True):
            first: dict[Messages, Prompt] = {}
            for prompt, messages in zip(self._prompts, by_prompt, strict=True):
                same = first.setdefault(messages, prompt)
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
