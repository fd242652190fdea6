"""The collection loop: generate a cell, store it, continue. A failed cell is an outcome like any other."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby, islice
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from tipbench.bench.collect.grid import diversity
from tipbench.bench.collect.journal import Entry
from tipbench.bench.engines.catalog import Engines, engine_name
from tipbench.bench.engines.http import Throttle
from tipbench.bench.engines.interface import Engine
from tipbench.bench.engines.residency import MemoryWatch, exclusive_use
from tipbench.bench.options import MAX_CONCURRENCY, Options
from tipbench.bench.records import Answer, Cell, Failure, Generation, Outcome, RubricText
from tipbench.bench.suites.suite import Suite
from tipbench.bench.tracking.runs import cell_draft
from tipbench.core.errors import EngineError, EngineUnreachable
from tipbench.core.locks import exclusive
from tipbench.core.paths import lock_path
from tipbench.core.version import __version__

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")
Clock = Callable[[], float]


# Parsing an engine's answer into candidates


def read_answer(suite: Suite, cell: Cell, generation: Generation) -> Answer:
    read = suite.contract.read(generation.text, cell.n_tips)
    rubric = suite.rubric
    checks: tuple[Mapping[str, bool], ...] = ()
    if rubric.by_code:
        checks = tuple(rubric.checked_flags(text, read.format_ok, cell.scenario.id) for text in read.candidates)
    return Answer(
        cell=cell,
        generation=generation,
        candidates=read.candidates,
        found=read.found,
        format_ok=read.format_ok,
        read_as=read.read_as,
        diversity=diversity(read.candidates),
        checks=checks,
        scores=rubric.code_scores(checks) if checks else {},
    )


# Running tasks concurrently, in bounded memory


def run_concurrently(
    work: Callable[[_Task], _Result], tasks: Iterable[_Task], limit: int, pool: Executor
) -> Iterator[list[_Result]]:
    """Yield results as they arrive: lists, because several may have arrived since the last one.

    At most `limit` tasks are started at a time, so memory stays bounded. All have ended when this ends, except after an
    interrupt.
    """
    if limit == 1:
        for task in tasks:
            yield [work(task)]
        return
    waiting = iter(tasks)
    running: set[Future[_Result]] = set()
    done: SimpleQueue[Future[_Result]] = SimpleQueue()
    is_interrupted = False
    try:
        while True:
            for task in islice(waiting, limit - len(running)):
                future = pool.submit(work, task)
                running.add(future)
                future.add_done_callback(done.put)
            if not running:
                return
            arrived = [done.get()]
            while not done.empty():
                arrived.append(done.get())
            running.difference_update(arrived)
            yield [future.result() for future in arrived if not future.exception()]
            for future in arrived:
                future.result()  # raises the error of one that failed
    except (KeyboardInterrupt, GeneratorExit):  # raised here, or in the consumer of the results
        is_interrupted = True  # a generation can take minutes
        raise
    finally:
        for future in running:
            future.cancel()
        if not is_interrupted:
            wait(running)


def collect(
    cells: Iterable[Cell],
    engine_of: Callable[[str], Engine],
    suite: Suite,
    store_cells: Callable[[Sequence[Entry]], None],
    watch: MemoryWatch,
    clock: Clock,
    concurrency: int | None = None,
) -> Iterator[Outcome]:
    """Generate the cells and yield each outcome once it is stored. At most one model is in memory at a time.

    A cell that fails is stored as a failure, and the loop continues. An engine that becomes unreachable ends it by
    raising EngineUnreachable; the missing cells are left for the next collection.
    """
    rubric = rubric_text(suite)
    pool = ThreadPoolExecutor(MAX_CONCURRENCY, "generate")  # for all models: a thread is started when it is needed
    try:
        for model, block in groupby(cells, key=lambda cell: cell.model.name):
            engine = engine_of(model)
            throttle = Throttle(concurrency or engine.default_concurrency)

            def run_cell(cell: Cell, engine: Engine = engine, throttle: Throttle = throttle) -> tuple[Outcome, Entry]:
                if throttle.limit == 1:
                    watch.begin(engine)  # with concurrent cells, a peak can't be attributed to one of them
                started = clock()
                outcome = generate(cell, engine, throttle, suite)
                span_ms = (round(started * 1000), round(clock() * 1000))
                draft = cell_draft(outcome, rubric, suite.name, __version__, span_ms, watch.figures())
                return outcome, Entry(cell.key, draft)

            watch.begin(engine)
            with _unloading(engine, model):
                for arrived in run_concurrently(run_cell, block, throttle.limit, pool):
                    store_cells([entry for _, entry in arrived])
                    yield from (outcome for outcome, _ in arrived)
    finally:
        pool.shutdown(wait=False)


@contextmanager
def _unloading(engine: Engine, model: str) -> Iterator[None]:
    """Unload the model at the end of the block, whatever ends it."""
    try:
        yield
    except BaseException:
        with suppress(EngineError):  # the user should see the first error
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


# Locks: one collection at a time per experiment, and per engine


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
    """Lock the experiment and the engines, so that no cell is generated twice and no two models are loaded.

    With `part`, lock only that part of the experiment; others may fill other parts at the same time.
    """
    with ExitStack() as stack:
        taken = f"another collection is filling experiment '{options.experiment}'"
        path = lock_path(home, "collect", address, options.experiment, *part)
        stack.enter_context(exclusive(path, taken, wait, say))
        for name in sorted({engine_name(model) for model in options.model_names}):
            models = [model for model in options.model_names if engine_name(model) == name]
            stack.enter_context(exclusive_use(engines.named(name), models, home, wait, say))
        yield
