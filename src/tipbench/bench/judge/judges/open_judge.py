"""Opens an automatic judge together with the engine and lock that it needs."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from tipbench.bench.engines.admission import admit
from tipbench.bench.engines.catalog import open_engines
from tipbench.bench.engines.residency import exclusive_use
from tipbench.bench.judge.judges.catalog import JudgeParts, judge_model, make_judge
from tipbench.bench.judge.judges.interface import Judge, Scored, not_reported
from tipbench.bench.judge.sample import families_shared
from tipbench.bench.options import Options
from tipbench.bench.suites.rubric import Rubric
from tipbench.bench.tracking.runs import stored_runs
from tipbench.bench.tracking.store import RunStore
from tipbench.core.settings import Settings
from tipbench.core.untrusted import printable


@contextmanager
def open_judge(
    name: str,
    rubric: Rubric,
    options: Options,
    store: RunStore | None,
    settings: Settings,
    clock: Callable[[], float],
    say: Callable[[str], None],
    identity: str | None = None,
    scored: Scored = not_reported,
) -> Iterator[Judge]:
    """Open a judge. If it is a model, it stays loaded for all items, and its engine is locked for other processes."""
    with ExitStack() as stack:
        engines = stack.enter_context(open_engines(options.model_copy(update={"unload": "model"}), settings))
        parts = JudgeParts(rubric, settings, engines.of, options.seed, clock, say, options.concurrency, scored)
        judge = make_judge(name, parts, identity)
        model = judge_model(name, settings)
        if model:
            admit([model], engines.of, 0, settings.is_true("TIPBENCH_MEMORY_CHECK"))
            if store:
                _warn_of_same_family(model, store, options.experiment, say)
            stack.enter_context(exclusive_use(engines.of(model), [model], settings.home, True, say))
        yield judge


def _warn_of_same_family(model: str, store: RunStore, experiment: str, say: Callable[[str], None]) -> None:
    runs = stored_runs(store, store.experiment(experiment))
    shared = families_shared(model, frozenset(run.params["model"] for run in runs))
    if shared:
        say(
            f"The judge {printable(model)} is of the same family as candidates ({', '.join(sorted(shared))}): models "
            "favour their own. Its κ with the anchors can't show that."
        )
