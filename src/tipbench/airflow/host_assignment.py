"""Assigns models to hosts: each model is looked up on all hosts that the run may use."""

import time
from collections.abc import Callable, Collection, Sequence

from tipbench.airflow.hosts import spread
from tipbench.bench.collect.grid import Grid
from tipbench.bench.engines.admission import admit
from tipbench.bench.engines.catalog import open_engines
from tipbench.bench.engines.interface import Engine, bare_name, loads_on_a_server
from tipbench.bench.judge.judges.catalog import judge_model
from tipbench.bench.options import Options, endpoint
from tipbench.bench.records import ModelInfo
from tipbench.bench.suites.suite import Suite
from tipbench.core.errors import EngineError, EngineUnreachable, InvalidInput, MissingExtra, ModelMissing, Problems
from tipbench.core.settings import Settings

_TIMEOUT_S = 60.0
_UNLOAD_AFTER_S = 20.0  # by then, a model of ours that is still loaded has lost its worker
_FREE_FOR_S = 1.0  # a model that is unloaded after every call is gone for moments only
_POLL_INTERVAL_S = 0.1


def host_indices(options: Options, hosts: Sequence[str]) -> list[int]:
    """Return the indices of the DAG's hosts that this run may use; raise InvalidInput if the DAG lacks one of them."""
    known = {endpoint(host): index for index, host in enumerate(hosts)}
    unknown = [url for url in options.ollama_urls if endpoint(url) not in known]
    if unknown:
        raise InvalidInput(
            f"ollama_url: the DAG has no pool for {', '.join(unknown)}, only for {', '.join(hosts)}; "
            f"'tipbench airflow init --ollama-url {','.join((*hosts, *unknown))}' creates one"
        )
    return [known[endpoint(url)] for url in options.ollama_urls]


class Hosts:
    """The DAG's hosts, as `plan` finds them. Free memory is only checked by `collect`, when nothing else is loaded."""

    def __init__(self, options: Options, hosts: Sequence[str], settings: Settings) -> None:
        self._options = options
        self._hosts = hosts
        self._settings = settings
        self.count = len(hosts)
        self.unreachable: dict[int, EngineUnreachable] = {}

    def run_model(self, model: str) -> bool:
        """Return whether the hosts run this model; if not, it runs in the worker or on a server that all share."""
        with open_engines(self._options.model_copy(update={"ollama_url": self._hosts[0]}), self._settings) as engines:
            return loads_on_a_server(engines.of(model))

    def find_model(self, model: str, index: int, max_model_b: float, refusals: list[str]) -> ModelInfo | None:
        """Return the model as the host has it; None if it can't be used there, with the reasons added to `refusals`."""
        if index in self.unreachable:
            return None
        options = self._options.model_copy(update={"ollama_url": self._hosts[index]})
        try:
            with open_engines(options, self._settings) as engines:
                (info,) = admit([model], engines.of, max_model_b, check_memory=False)
            return info
        except Problems as error:
            refusals += error.problems
        except EngineUnreachable as error:
            self.unreachable[index] = error
        except (InvalidInput, ModelMissing, MissingExtra) as error:
            refusals.append(str(error))
        return None


def assign_models(
    options: Options, suite: Suite, indices: Sequence[int], hosts: Hosts, problems: list[str]
) -> tuple[list[ModelInfo], list[list[str]]]:
    """Assign each model to a host that has it, and models of other engines to the first host.

    Returns the models and their names by host; both are empty if there are problems, which are added to `problems`. An
    unreachable host is skipped if the others have all models; otherwise its EngineUnreachable is raised.
    """
    infos: dict[str, ModelInfo] = {}
    candidates: dict[str, list[int]] = {}
    for model in options.model_names:
        refusals: list[str] = []
        for index in indices if hosts.run_model(model) else [0]:
            info = hosts.find_model(model, index, options.max_model_b, refusals)
            if info is None:
                continue
            candidates.setdefault(model, []).append(index)
            if infos.setdefault(model, info).digest != info.digest:
                problems.append(
                    f"{model}: is not the same on all hosts; pull it again on each, so that all cells come from one "
                    "model"
                )
        if model not in candidates and hosts.unreachable:
            raise next(iter(hosts.unreachable.values()))  # it may be reachable when the task is retried
        if model not in candidates:
            problems += dict.fromkeys(refusals)
    if problems:
        return [], []
    models = [infos[model] for model in options.model_names]
    Grid(options, suite, models)  # raises for duplicate models
    sizes = {model.name: model.size_bytes or model.parameters or 0 for model in models}
    return models, spread(sizes, candidates, hosts.count)


def check_judge_model(options: Options, hosts: Hosts, settings: Settings, problems: list[str]) -> None:
    """Check that a judge that is a model is on the first host, whatever its size; add what is wrong to `problems`."""
    model = judge_model(options.judge, settings)
    if model:
        hosts.find_model(model, 0, 0, problems)
        if 0 in hosts.unreachable:
            raise hosts.unreachable[0]


# Waiting for free memory: no other model may be in a host's memory when ours is loaded.
#
# A pool's slot is free as soon as Airflow gives a task up, but the worker of that task learns of it only with its next
# heartbeat, seconds later, and our locks don't reach other machines. So the host itself is polled.


def wait_for_free_memory(
    engine: Engine,
    model: str,
    say: Callable[[str], None],
    run_models: Collection[str] = (),
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until no other model is in memory, and none appears for a moment; raise EngineError if one stays.

    `run_models`: models that only this run uses on this host. Those that a lost worker left loaded are unloaded.
    """
    own = bare_name(model, engine.name)
    started = free_since = clock()
    others: list[str] = []
    while clock() - free_since < _FREE_FOR_S:
        found = [loaded.name for loaded in engine.resident() if not engine.same_model(loaded.name, own)]
        if found:
            if not others:
                say(f"{', '.join(found)} is in memory at {engine.address}; waiting until it is unloaded …")
            others, free_since = found, clock()
        if clock() - started > _UNLOAD_AFTER_S:
            for left in [name for name in found if any(engine.same_model(name, one) for one in run_models)]:
                say(f"{left} was left in memory at {engine.address} by a worker that is gone; unloading it.")
                engine.unload(left)
        if others and clock() - started > _TIMEOUT_S:
            raise EngineError(
                f"{', '.join(others)} is still in memory at {engine.address}, and {model} is not loaded beside it; "
                f"unload it ('ollama stop {others[0]}'), or keep other clients away from this host, and clear this task"
            )
        sleep(_POLL_INTERVAL_S)
