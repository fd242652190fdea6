"""What a job needs to itself: two that need the same run one after the other."""

from collections.abc import Mapping, Sequence

from tipbench.bench.engines.catalog import engine_name
from tipbench.bench.options import Options, endpoint
from tipbench.core.settings import Settings

_EXPERIMENT = "experiment "
_OLLAMA = "ollama "
_EMBEDDED = "embedded"
SIMULATIONS = "simulations"  # each uses all cores


def engines_of(options: Options, settings: Settings) -> set[str]:
    """The names of the engines that a run will use, its judge's too."""
    judge = [settings.get("TIPBENCH_JUDGE_MODEL")] if options.judge == "model" else []
    return {engine_name(model) for model in (*options.model_names, *judge)}


def needs_of(options: Options, settings: Settings) -> tuple[str, ...]:
    """Memory at an Ollama or in this machine, and the experiment, which one collection fills at a time."""
    engines = engines_of(options, settings)
    needs = [_EXPERIMENT + options.experiment]
    if "ollama" in engines:
        needs.append(_OLLAMA + endpoint(options.ollama_url))
    if "embedded" in engines:
        needs.append(_EMBEDDED)
    return tuple(needs)


def what_it_waits_for(needs: Sequence[str], taken: Mapping[str, str]) -> str:
    """One sentence about the first need that another job has; nothing when all are free. `taken`: need → by what."""
    for need in needs:
        if need in taken:
            return f"waits for {taken[need]}{_place(need)}"
    return ""


def _place(need: str) -> str:
    if need.startswith(_EXPERIMENT):
        return ", which fills the same experiment"
    if need.startswith(_OLLAMA):
        return f" at {need.removeprefix(_OLLAMA)}"
    return ", since one runs at a time" if need == SIMULATIONS else " on the embedded engine"
