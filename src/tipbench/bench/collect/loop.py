"""The loop: generate a cell, store it, go on. A failed cell is an outcome like any other."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby, islice
from pathlib import Path
from typing import TypeVar

from tipbench.bench.collect.grid import diversity
from tipbench.bench.engines.catalog import Engines, engine_name
from tipbench.bench.engines.http import Throttle
from tipbench.bench.engines.interface import Engine
from tipbench.bench.engines.residency import MemoryWatch, exclusive_use
from tipbench.bench.options import Options
from tipbench.bench.records import Answer, Cell, Failure, Generation, Outcome, RubricText
from tipbench.bench.suites.suite import Suite
from tipbench.bench.tracking.runs import cell_draft
from tipbench.bench.tracking.store import RunDraft
from tipbench.core.errors import EngineError, EngineUnreachable
from tipbench.core.locks import exclusive
from tipbench.core.paths import lock_path
from tipbench.core.version import __version__

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
Clock = Callable[[], float]


# From what an engine gave back to an answer with candidates.


def read_answer(suite: Suite, cell: Cell, generation: Generation) -> Answer:
    read = suite.contract.read(generation.text, cell.n_tips)
    return Answer(
        cell=cell,
        generation=generation,
        candidates=read.candidates,
        found=read.found,
        format_ok=read.format_ok,
        read_as=read.read_as,
        diversity=diversity(read.candidates),
    )


# Several tasks side by side, and never more of them in memory than run at once.


def side_by_side(work: Callable[[_Task], _Result], tasks: Iterable[_Task], at_once: int) -> Iterator[_Result]:
    """The results as they come. No more tasks than that are begun, so memory does not grow with their number."""
    if at_once == 1:
        yield from map(work, tasks)
        return
    waiting = iter(tasks)
    running: set[Future[_Result]] = set()
    pool = ThreadPoolExecutor(at_once, thread_name_prefix="generate")
    is_broken_off = False
    try:
        while True:
            for task in islice(waiting, at_once - len(running)):
                running.add(pool.submit(work, task))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except (KeyboardInterrupt, GeneratorExit):  # here, or where the results go
        is_broken_off = True
        raise
    finally:
        pool.shutdown(wait=not is_broken_off, cancel_futures=is_broken_off)  # a generation can take minutes


def collect(
    cells: Iterable[Cell],
    engine_of: Callable[[str], Engine],
    suite: Suite,
    keep: Callable[[str, RunDraft], None],
    watch: MemoryWatch,
    clock: Clock,
    concurrency: int | None = None,
) -> Iterator[Outcome]:
    """Yields each outcome once it is kept. Never are two models in memory: one leaves before the next comes.

    A cell that fails is stored as a failure and the grid goes on; an engine that can't be reached any more ends it,
    and what is missing is left for the next start.
    """
    rubric = rubric_text(suite)
    for model, block in groupby(cells, key=lambda cell: cell.model.name):
        engine = engine_of(model)
        throttle = Throttle(concurrency or engine.at_once)

        def one(cell: Cell, engine: Engine = engine, throttle: Throttle = throttle) -> tuple[Outcome, RunDraft]:
            if throttle.limit == 1:
                watch.begin(engine)  # side by side, nobody can tell which cell a peak belongs to
            started = clock()
            outcome = generate(cell, engine, throttle, suite)
            span_ms = (round(started * 1000), round(clock() * 1000))
            return outcome, cell_draft(outcome, rubric, suite.name, __version__, span_ms, watch.figures())

        watch.begin(engine)
        try:
            for outcome, draft in side_by_side(one, block, throttle.limit):
                keep(outcome.cell.key, draft)
                yield outcome
        except BaseException:
            with suppress(EngineError):  # what went wrong first is what the user should read
                engine.unload(model)
            raise
        try:
            engine.unload(model)
        except KeyboardInterrupt:
            with suppress(EngineError):
                engine.unload(model)
            raise


def generate(cell: Cell, engine: Engine, throttle: Throttle, suite: Suite) -> Outcome:
    try:
        generation = throttle.run(lambda: engine.generate(cell.request))
    except EngineUnreachable:
        raise
    except EngineError as error:
        return Failure(cell, str(error))
    return read_answer(suite, cell, generation)


def rubric_text(suite: Suite) -> RubricText:
    rubric = suite.rubric
    return RubricText(rubric.name, rubric.digest, rubric.text, rubric.lowest())


# One collection at a time: where it stores its cells, and at the engines that its models are on.


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
