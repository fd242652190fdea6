"""The grid: every (model × prompt × scenario), model by model, and the identity of each cell."""

from collections.abc import Sequence

from tipbench.errors import InvalidInput
from tipbench.identity import data_digest, derived_seed
from tipbench.options import Options
from tipbench.records import Cell, GenerationRequest, ModelInfo, Scenario
from tipbench.suites.suite import Prompt, Suite


def grid(options: Options, suite: Suite, models: Sequence[ModelInfo]) -> list[Cell]:
    """All cells in model-major order, so that each model is loaded for one block."""
    scenarios = suite.first_scenarios(options.n_scenarios)
    prompts = [suite.prompt(version) for version in options.prompt_names]
    cells = [
        _cell(options, suite, model, prompt, scenario, repeat)
        for model in models
        for prompt in prompts
        for scenario in scenarios
        for repeat in range(options.repeats)
    ]
    _check_distinct(cells)
    return cells


def _check_distinct(cells: Sequence[Cell]) -> None:
    """Two cells that ask the same are one cell by their key, and one of them would be missing from the leaderboard."""
    first: dict[str, Cell] = {}
    for cell in cells:
        same = first.setdefault(cell.key, cell)
        if same is not cell:
            raise InvalidInput(
                f"{same.label} and {cell.label} ask the model for exactly the same; leave one of them out"
            )


def _cell(options: Options, suite: Suite, model: ModelInfo, prompt: Prompt, scenario: Scenario, repeat: int) -> Cell:
    request = GenerationRequest(
        model=model.name,
        messages=suite.messages(prompt, scenario, options.n_tips, options.diversity),
        temperature=options.temperature,
        seed=derived_seed(options.seed, scenario.id, repeat),
        max_tokens=options.max_tokens or suite.contract.max_tokens,
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


def _key(options: Options, model: ModelInfo, request: GenerationRequest, repeat: int) -> str:
    """Identity is what shapes the answer, and nothing else: no URL, no experiment, no rubric."""
    return data_digest(
        {
            "engine": model.engine,
            "model": model.digest or model.name,
            "messages": [[message.role, message.content] for message in request.messages],
            "n_tips": options.n_tips,
            "temperature": request.temperature,
            "diversity": options.diversity,
            "max_tokens": request.max_tokens,
            "seed": request.seed,
            "repeat": repeat,
        }
    )
