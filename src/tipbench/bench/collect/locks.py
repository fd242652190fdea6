"""One collection at a time: where it stores its cells, and at the engines that its models are on."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tipbench.bench.engines.catalog import Engines, engine_name
from tipbench.bench.engines.residency import exclusive_use
from tipbench.bench.options import Options
from tipbench.core.locks import exclusive
from tipbench.core.paths import lock_path


@contextmanager
def exclusive_collection(
    engines: Engines,
    options: Options,
    address: str,
    home: Path,
    wait: bool,
    say: Callable[[str], None],
    part: tuple[str, ...] = (),
) -> Iterator[None]:
    """So that no cell is generated twice, and no two models are loaded.

    `part`: only this part of the experiment, which others fill at the same time elsewhere.
    """
    with ExitStack() as stack:
        taken = f"another collection is filling experiment '{options.experiment}'"
        path = lock_path(home, "collect", address, options.experiment, *part)
        stack.enter_context(exclusive(path, taken, wait, say))
        for name in sorted({engine_name(model) for model in options.model_names}):
            models = [model for model in options.model_names if engine_name(model) == name]
            stack.enter_context(exclusive_use(engines.named(name), models, home, wait, say))
        yield
