"""Which host takes which model: each is looked for on all hosts that the run may use."""

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

_PATIENCE_S = 60.0
_OURS_S = 20.0  # after that, what is left of our own models has no worker any more
_QUIET_S = 1.0  # a model that leaves after every call is away for moments only
_EVERY_S = 0.1


def host_numbers(options: Options, hosts: Sequence[str]) -> list[int]:
    """Which of the DAG's hosts this run may use."""
    known = {endpoint(host): number for number, host in enumerate(hosts)}
    unknown = [url for url in options.ollama_urls if endpoint(url) not in known]
    if unknown:
        raise InvalidInput(
            f"ollama_url: the DAG has no pool for {', '.join(unknown)}, only for {', '.join(hosts)}; "
            f"'tipbench airflow init --ollama-url {','.join((*hosts, *unknown))}' makes one"
        )
    return [known[endpoint(url)] for url in options.ollama_urls]


class Hosts:
    """The DAG's hosts, as `plan` finds them. Free memory is looked at by `collect`, when nothing else is loaded."""

    def __init__(self, options: Options, hosts: Sequence[str], settings: Settings) -> None:
        self._options = options
        self._hosts = hosts
        self._settings = settings
        self.count = len(hosts)
        self.away: dict[int, EngineUnreachable] = {}

    def have_their_own(self, model: str) -> bool:
        """Whether each host runs the model by itself; else it runs in the worker, or on a server that all share."""
        with open_engines(self._options.model_copy(update={"ollama_url": self._hosts[0]}), self._settings) as engines:
            return loads_on_a_server(engines.of(model))

    def admitted(self, model: str, number: int, max_model_b: float, refusals: list[str]) -> ModelInfo | None:
        """What the model is on this host; None, and why, where it can't be used there."""
        if number in self.away:
            return None
        options = self._options.model_copy(update={"ollama_url": self._hosts[number]})
        try:
            with open_engines(options, self._settings) as engines:
                (info,) = admit([model], engines.of, max_model_b, check_memory=False)
            return info
        except Problems as error:
            refusals += error.problems
        except EngineUnreachable as error:
            self.away[number] = error
        except (InvalidInput, ModelMissing, MissingExtra) as error:
            refusals.append(str(error))
        return None


def shared_out(
    options: Options, suite: Suite, numbers: Sequence[int], hosts: Hosts, problems: list[str]
) -> tuple[list[ModelInfo], list[list[str]]]:
    """Each model is given to a host that has it; models of other engines to the first host's share.

    A host that is away is done without, where others have all models.
    """
    infos: dict[str, ModelInfo] = {}
    able: dict[str, list[int]] = {}
    for model in options.model_names:
        refusals: list[str] = []
        for number in numbers if hosts.have_their_own(model) else [0]:
            info = hosts.admitted(model, number, options.max_model_b, refusals)
            if info is None:
                continue
            able.setdefault(model, []).append(number)
            if infos.setdefault(model, info).digest != info.digest:
                problems.append(
                    f"{model}: is not the same at all hosts; pull it anew, so that its cells are of one model"
                )
        if model not in able and hosts.away:
            raise next(iter(hosts.away.values()))  # it may be back by the next try
        if model not in able:
            problems += dict.fromkeys(refusals)
    if problems:
        return [], []
    models = [infos[model] for model in options.model_names]
    Grid(options, suite, models)  # refuses twins
    sizes = {model.name: model.size_bytes or model.parameters or 0 for model in models}
    return models, spread(sizes, able, hosts.count)


def check_judge_model(options: Options, hosts: Hosts, settings: Settings, problems: list[str]) -> None:
    """A judge that is a model has to be on the first host; it may be of any size."""
    model = judge_model(options.judge, settings)
    if model:
        hosts.admitted(model, 0, 0, problems)
        if 0 in hosts.away:
            raise hosts.away[0]


# Nobody else's model is in a host's memory before ours is loaded.
#
# A pool's slot is free as soon as Airflow writes a task off, and the worker of that task learns it with its next
# heartbeat, seconds later; on another machine no lock of ours tells. So the host itself is asked.


def wait_until_vacant(
    engine: Engine,
    model: str,
    say: Callable[[str], None],
    ours: Collection[str] = (),
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Returns once no other model has been in memory for a moment. Raises EngineError when one stays.

    `ours`: models that only this run uses on this host; of these, what a lost worker left loaded is unloaded.
    """
    own = bare_name(model, engine.name)
    begun = quiet_since = clock()
    others: list[str] = []
    while clock() - quiet_since < _QUIET_S:
        found = [held.name for held in engine.resident() if not engine.same_model(held.name, own)]
        if found:
            if not others:
                say(f"{', '.join(found)} is in memory at {engine.address}; waiting until it has left …")
            others, quiet_since = found, clock()
        if clock() - begun > _OURS_S:
            for left in [name for name in found if any(engine.same_model(name, one) for one in ours)]:
                say(f"{left} was left in memory at {engine.address} by a worker that is gone; unloading it.")
                engine.unload(left)
        if others and clock() - begun > _PATIENCE_S:
            raise EngineError(
                f"{', '.join(others)} stays in memory at {engine.address}, and {model} is not loaded beside it; "
                f"unload it ('ollama stop {others[0]}'), or keep others away from this host, and clear this task"
            )
        sleep(_EVERY_S)
