"""Requests for runs: checked here already, so that nobody waits for a job only to be refused."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tipbench.bench.collect.grid import Grid
from tipbench.bench.collect.plan import make_plan
from tipbench.bench.engines.admission import admit, parameters_from_name
from tipbench.bench.engines.catalog import DEFAULT_ENGINE, EngineModels, engine_name, open_engines
from tipbench.bench.judge.judges.catalog import CATALOG as JUDGES
from tipbench.bench.judge.judges.catalog import check_judge
from tipbench.bench.options import Options, endpoint, make_options, split_names
from tipbench.bench.records import ModelInfo, StoredCell
from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.suite import Suite
from tipbench.core.errors import EngineError, InvalidInput, MissingExtra, Problems
from tipbench.core.settings import Settings
from tipbench.core.untrusted import without_credentials
from tipbench.server.jobs.simulation_asked import refuse_credentials
from tipbench.server.views.snapshots import SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreProvider

_OF_MODELS = {"models", "max_model_b", "ollama_url"}


@dataclass(frozen=True)
class Choices:
    """What the form for a run has to choose from."""

    suite: str
    prompts: Mapping[str, str]  # version → its description
    scenarios: int
    prefix: str  # of experiment names
    judges: Sequence[str]  # that run by themselves and have what they need
    engines: Sequence[EngineModels]
    defaults: Options


@dataclass(frozen=True)
class Estimate:
    cells: int
    stored: int
    to_do: int
    seconds: float
    measured: bool  # from earlier cells of these models; else a rule of thumb
    at_most: bool = False  # what is stored already is only known where the models are


@dataclass(frozen=True)
class _Admitted:
    """A request that can be run."""

    options: Options
    suite: Suite
    models: Sequence[ModelInfo]


class RunRequests:
    """What can be run, and whether a request can.

    Where runs happen elsewhere, so are their engines and their judges' settings: those are left to be looked at there.
    """

    def __init__(self, stores: StoreProvider, snapshots: SnapshotMemoryCache, runs_here: bool = True) -> None:
        self._stores = stores
        self._looks = snapshots
        self._runs_here = runs_here

    def choices(self, ollama_url: str | None = None) -> Choices:
        settings = self._stores.settings
        options = make_options({"ollama_url": ollama_url} if ollama_url else {})
        refuse_credentials(options)  # an @ or a ? could also make one address look like another
        _refuse_other_addresses(options, settings)
        suite = load_suite(options.suite)
        options = suite.fit(options)
        judges = [name for name in JUDGES if not self._runs_here or _is_ready(name, settings)]
        return Choices(
            suite=suite.name,
            prompts={version: prompt.description for version, prompt in suite.prompts.items()},
            scenarios=len(suite.scenarios),
            prefix=suite.experiment_prefix,
            judges=judges,
            engines=_offers(options, settings) if self._runs_here else _offers_from_afar(options, settings),
            defaults=options,
        )

    def checked(self, given: Mapping[str, Any]) -> Options:
        """The options of a request; raises Problems with everything that is wrong with it."""
        return self._admitted(given).options

    def estimate(self, given: Mapping[str, Any]) -> Estimate:
        """Of a request that can be run."""
        asked = self._admitted(given)
        grid = Grid(asked.options, asked.suite, asked.models)
        plan = make_plan(asked.models, grid, self._stored(asked.options, asked.suite))
        return Estimate(
            plan.cells, plan.stored, len(plan.to_do), plan.seconds, plan.measured, at_most=not self._runs_here
        )

    def _admitted(self, given: Mapping[str, Any]) -> _Admitted:
        """Everything that can be wrong, told at once; what is wrong with one key leaves the others to be looked at."""
        settings = self._stores.settings
        problems = _Gathered()
        with problems.gathering():
            make_options(given, "the request")
        wrong = {problem.partition(":")[0] for problem in problems.found}
        options = make_options({key: given[key] for key in given if key in Options.model_fields and key not in wrong})
        self._check_addresses(options, problems)
        wrong |= {problem.partition(":")[0] for problem in problems.found}
        suite = self._suite(options, problems)
        options = suite.fit(options)
        with problems.gathering(unless="n_scenarios" in wrong):
            suite.first_scenarios(options.n_scenarios)
        for version in options.prompt_names:
            with problems.gathering(unless="prompts" in wrong):
                suite.prompt(version)
        with problems.gathering():
            if options.judge and (self._runs_here or options.judge not in JUDGES):
                check_judge(options.judge, settings)
        with problems.gathering(unless="experiment" in wrong):
            self._stored(options, suite)
        models: list[ModelInfo] = []
        for name in dict.fromkeys(map(engine_name, options.model_names)):  # one that is away hides no other
            own = [model for model in options.model_names if engine_name(model) == name]
            if not wrong & _OF_MODELS:
                with problems.gathering():
                    models += self._admit(own, options)
        problems.tell()
        models.sort(key=lambda model: options.model_names.index(model.name))
        return _Admitted(options.model_copy(update={"mlflow_url": self._stores.address}), suite, models)

    def _admit(self, models: Sequence[str], options: Options) -> list[ModelInfo]:
        """What these models of one engine are; from afar, what their names tell."""
        settings = self._stores.settings
        if not self._runs_here:
            return [ModelInfo(name, engine_name(name), parameters_from_name(name), "name") for name in models]
        with open_engines(options, settings) as engines:
            return admit(models, engines.of, options.max_model_b, settings.is_true("TIPBENCH_MEMORY_CHECK"))

    def _suite(self, options: Options, problems: "_Gathered") -> Suite:
        with problems.gathering():
            return load_suite(options.suite)
        problems.tell()
        raise AssertionError("a suite that can't be loaded is a problem")

    def _check_addresses(self, options: Options, problems: "_Gathered") -> None:
        """What a job is given is kept and shown, so it holds no secret; and results go where this server reads."""
        with problems.gathering():
            refuse_credentials(options)
        with problems.gathering():
            _refuse_other_addresses(options, self._stores.settings)
        elsewhere = without_credentials(options.mlflow_url or "")
        if elsewhere and elsewhere != self._stores.address:
            problems.found.append(
                f"mlflow_url: this server keeps its results in {self._stores.address}; leave the key out, or start a "
                f"server with --mlflow-url {elsewhere}"
            )

    def _stored(self, options: Options, suite: Suite) -> Sequence[StoredCell]:
        """The cells that are there, of an experiment that this suite may fill."""
        store = self._stores.store_if_any()
        experiment = store.find_experiment(options.experiment) if store else None
        if store is None or experiment is None:
            return ()
        of_suite = experiment.tags.get("tipbench.suite")
        if of_suite is None:
            raise InvalidInput(
                f"experiment '{options.experiment}' was not made by tipbench; give this run a name of its own, such as "
                f"{suite.experiment_prefix}1"
            )
        if of_suite != suite.name:
            raise InvalidInput(
                f"experiment '{options.experiment}' belongs to suite '{of_suite}', not '{suite.name}'; give this run a "
                f"name of its own, such as {suite.experiment_prefix}1"
            )
        return self._looks.of(store, experiment).snapshot.cells


class _Gathered:
    """Problems of several checks."""

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextmanager
    def gathering(self, unless: bool = False) -> Iterator[None]:
        """Unless the check would be about something that nobody asked for."""
        try:
            yield
        except Problems as error:
            self.found += () if unless else error.problems
        except (InvalidInput, EngineError, MissingExtra) as error:
            self.found += () if unless else (str(error),)

    def tell(self) -> None:
        if self.found:
            raise Problems("the request can't be run:", self.found)


def _refuse_other_addresses(options: Options, settings: Settings) -> None:
    """Raise InvalidInput if the request names an Ollama that the server's admin does not allow."""
    allowed = settings.get("TIPBENCH_ALLOWED_OLLAMA_URLS")
    if not allowed or options.ollama_url == Options.model_fields["ollama_url"].default:
        return
    endpoints = {endpoint(url.rstrip("/")) for url in split_names(allowed)}
    for url in options.ollama_urls:
        if endpoint(url) not in endpoints:
            raise InvalidInput(
                f"ollama_url: this server may not ask {without_credentials(url)}; give one of "
                f"{', '.join(sorted(endpoints))}, or have an admin add it to TIPBENCH_ALLOWED_OLLAMA_URLS"
            )


def _is_ready(judge: str, settings: Settings) -> bool:
    try:
        check_judge(judge, settings)
    except InvalidInput:
        return False
    return True


def _offers(options: Options, settings: Settings) -> list[EngineModels]:
    with open_engines(options, settings) as engines:
        return list(engines.offered())


def _offers_from_afar(options: Options, settings: Settings) -> list[EngineModels]:
    """An Ollama is the same one, whoever asks at its address; but a default that is away here is nobody's mistake."""
    found = []
    for url in options.ollama_urls:
        with open_engines(options.model_copy(update={"ollama_url": url}), settings) as engines:
            found.append(engines.models_of(DEFAULT_ENGINE))
    is_default = options.ollama_url == Options.model_fields["ollama_url"].default
    return [one for one in found if one and not (is_default and one.problem)]
