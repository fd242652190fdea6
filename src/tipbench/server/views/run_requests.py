"""Run requests: validated before a job is queued, so that nobody waits for one that can't be run."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tipbench.bench.collect.grid import Grid
from tipbench.bench.collect.plan import make_plan
from tipbench.bench.defaults import machine_defaults
from tipbench.bench.engines.admission import admit, parameters_from_name
from tipbench.bench.engines.catalog import DEFAULT_ENGINE, EngineModels, engine_name, open_engines
from tipbench.bench.judge.calibration import Calibration, load_calibrations
from tipbench.bench.judge.judges.catalog import CATALOG as JUDGES
from tipbench.bench.judge.judges.catalog import check_judge, judge_names
from tipbench.bench.options import Options, endpoint, make_options, split_names
from tipbench.bench.records import ModelInfo, StoredCell
from tipbench.bench.suites.anchors import without_anchors
from tipbench.bench.suites.load import built_in_suites, load_suite
from tipbench.bench.suites.registered import registered_suites
from tipbench.bench.suites.suite import Suite
from tipbench.core.errors import EngineError, InvalidInput, MissingExtra, NotFound, Problems
from tipbench.core.settings import Settings
from tipbench.core.untrusted import without_credentials
from tipbench.server.jobs.simulation_asked import refuse_credentials
from tipbench.server.views.snapshots import SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreProvider

_MODEL_KEYS = {"models", "max_model_b", "ollama_url"}


@dataclass(frozen=True)
class Choices:
    """What the form for a run has to choose from."""

    suite: str
    suites: Sequence[str]  # all that are known by name
    prompts: Mapping[str, str]  # version → its description
    scenarios: int
    prefix: str  # of experiment names
    warning: str  # that the suite has too few anchors to check a judge; empty if it has enough
    judges: Sequence[str]  # automatic judges that have the settings they need
    engines: Sequence[EngineModels]
    defaults: Options


@dataclass(frozen=True)
class Estimate:
    cells: int
    stored: int
    to_do: int
    seconds: float
    measured: bool  # from earlier cells of these models; else by a rule of thumb
    at_most: bool = False  # for remote runs, since stored cells are only known where the models are


@dataclass(frozen=True)
class _Admitted:
    """A valid request with its suite and models."""

    options: Options
    suite: Suite
    models: Sequence[ModelInfo]


class RunRequests:
    """Lists what can be run, and validates and estimates requests.

    If runs are remote, so are their engines and judge settings; those are then checked there, not here.
    """

    def __init__(self, stores: StoreProvider, snapshots: SnapshotMemoryCache, runs_locally: bool = True) -> None:
        self._stores = stores
        self._snapshots = snapshots
        self._runs_locally = runs_locally

    def choices(
        self, ollama_url: str | None = None, suite_name: str | None = None, with_models: bool = True
    ) -> Choices:
        """Return what a run of this suite has to choose from; without `with_models`, no engine is asked.

        Raises SuiteError or InvalidInput if the suite can't be used.
        """
        settings = self._stores.settings
        given = {"ollama_url": ollama_url, "suite": suite_name}
        options = self._options({key: value for key, value in given.items() if value})
        refuse_credentials(options)  # an @ or a ? could also disguise an address
        self._refuse_other_addresses(options)
        suite = load_suite(options.suite, settings)
        options = suite.apply_defaults(options)
        offers = _offers if self._runs_locally else _remote_offers
        return Choices(
            suite=suite.name,
            suites=self.suites(),
            prompts={version: prompt.description for version, prompt in suite.prompts.items()},
            scenarios=len(suite.scenarios),
            prefix=suite.experiment_prefix,
            warning=without_anchors(suite, settings),
            judges=self.judges(),
            engines=offers(options, settings) if with_models else (),
            defaults=options,
        )

    def suites(self) -> list[str]:
        """Return the suites that are known by name: built-in and registered ones."""
        return [*built_in_suites(), *registered_suites(self._stores.settings)]

    def validate(self, given: Mapping[str, Any]) -> Options:
        """Validate a run request and return its options; raise Problems, listing every one."""
        return self._admit_request(given).options

    def validate_judge(self, experiment: str, judge: str) -> Options:
        """Validate the request that a judge score what is pending in an experiment; raise InvalidInput if it can't."""
        if self._runs_locally or judge not in JUDGES:
            check_judge(judge, self._stores.settings)
        return self._options_of(experiment, judge=judge, **self._defaults("ollama_url"))

    def validate_publish(self, experiment: str) -> Options:
        """Validate the request to show an experiment on MLflow's pages; raise NotFound if there is none."""
        return self._options_of(experiment)

    def _options_of(self, experiment: str, **options: str) -> Options:
        store = self._stores.store_if_any()
        if store is None or store.find_experiment(experiment) is None:
            raise NotFound(f"there is no experiment '{experiment}' here; see GET /api/bench/experiments")
        return make_options({"experiment": experiment, "mlflow_url": self._stores.address, **options})

    def _options(self, given: Mapping[str, Any]) -> Options:
        """Return a run's options: what was given, and this machine's defaults for the rest."""
        return make_options({**self._defaults(*Options.model_fields.keys() - given.keys()), **given})

    def _defaults(self, *keys: str) -> dict[str, Any]:
        """Return this machine's defaults; the store is the server's, and remote runs have Ollama hosts of their own."""
        not_ours = {"mlflow_url"} if self._runs_locally else {"mlflow_url", "ollama_url"}
        return machine_defaults(self._stores.settings, set(keys) - not_ours)

    def judges(self) -> list[str]:
        """Return the automatic judges that have the settings they need."""
        settings = self._stores.settings
        return [name for name in judge_names(settings) if not self._runs_locally or _is_ready(name, settings)]

    def calibrations(self) -> list[Calibration]:
        """Return what automatic judges made of the anchors on this machine, newest first."""
        return load_calibrations(self._stores.settings.home)

    def estimate(self, given: Mapping[str, Any]) -> Estimate:
        """Estimate the cells and the time of a run request; raise Problems, listing every one, if it is not valid."""
        admitted = self._admit_request(given)
        grid = Grid(admitted.options, admitted.suite, admitted.models)
        plan = make_plan(admitted.models, grid, self._stored(admitted.options, admitted.suite))
        return Estimate(
            plan.cells, plan.stored, len(plan.to_do), plan.seconds, plan.measured, at_most=not self._runs_locally
        )

    def _admit_request(self, given: Mapping[str, Any]) -> _Admitted:
        """Run all checks and raise Problems, listing every one; keys that are wrong don't hide problems with others."""
        settings = self._stores.settings
        problems = _ProblemCollector()
        with problems.collecting():
            make_options(given, "the request")
        wrong = {problem.partition(":")[0] for problem in problems.found}
        options = self._options({key: given[key] for key in given if key in Options.model_fields and key not in wrong})
        self._check_addresses(options, problems)
        wrong |= {problem.partition(":")[0] for problem in problems.found}
        suite = self._suite(options, problems)
        options = suite.apply_defaults(options)
        with problems.collecting(unless="n_scenarios" in wrong):
            suite.first_scenarios(options.n_scenarios)
        for version in options.prompt_names:
            with problems.collecting(unless="prompts" in wrong):
                suite.prompt(version)
        with problems.collecting():
            if options.judge and (self._runs_locally or options.judge not in JUDGES):
                check_judge(options.judge, settings)
        with problems.collecting(unless="experiment" in wrong):
            self._stored(options, suite)
        models: list[ModelInfo] = []
        # Engine by engine, so that an unreachable one doesn't hide problems with others.
        for name in dict.fromkeys(map(engine_name, options.model_names)):
            own = [model for model in options.model_names if engine_name(model) == name]
            if not wrong & _MODEL_KEYS:
                with problems.collecting():
                    models += self._admit(own, options)
        problems.raise_if_any()
        models.sort(key=lambda model: options.model_names.index(model.name))
        # By its folder, which a job's process and a remote run find without this machine's list of suites.
        named = options.suite if suite.is_built_in else str(suite.folder)
        update = {"mlflow_url": self._stores.address, "suite": named}
        return _Admitted(options.model_copy(update=update), suite, models)

    def _admit(self, models: Sequence[str], options: Options) -> list[ModelInfo]:
        """Return what is known of these models of one engine; for remote runs, only what their names say."""
        settings = self._stores.settings
        if not self._runs_locally:
            return [ModelInfo(name, engine_name(name), parameters_from_name(name), "name") for name in models]
        with open_engines(options, settings) as engines:
            return admit(models, engines.of, options.max_model_b, settings.is_true("TIPBENCH_MEMORY_CHECK"))

    def _suite(self, options: Options, problems: "_ProblemCollector") -> Suite:
        with problems.collecting():
            return load_suite(options.suite, self._stores.settings)
        problems.raise_if_any()
        raise AssertionError("a suite that can't be loaded is a problem")

    def _check_addresses(self, options: Options, problems: "_ProblemCollector") -> None:
        """Check that addresses hold no secrets, as jobs are stored and shown, and that results go to our store."""
        with problems.collecting():
            refuse_credentials(options)
        with problems.collecting():
            self._refuse_other_addresses(options)
        mlflow_url = without_credentials(options.mlflow_url or "")
        if mlflow_url and mlflow_url != self._stores.address:
            problems.found.append(
                f"mlflow_url: this server stores its results in {self._stores.address}; leave the key out, or start "
                f"another server with --mlflow-url {mlflow_url}"
            )

    def _refuse_other_addresses(self, options: Options) -> None:
        """Raise InvalidInput if the request names an Ollama that the server's admin does not allow.

        The default is allowed, because only the admin can set another one.
        """
        allowed = self._stores.settings.get("TIPBENCH_ALLOWED_OLLAMA_URLS")
        if not allowed or options.ollama_url == self._options({}).ollama_url:
            return
        endpoints = {endpoint(url.rstrip("/")) for url in split_names(allowed)}
        for url in options.ollama_urls:
            if endpoint(url) not in endpoints:
                raise InvalidInput(
                    f"ollama_url: this server may not use {without_credentials(url)}; use one of "
                    f"{', '.join(sorted(endpoints))}, or have an admin add it to TIPBENCH_ALLOWED_OLLAMA_URLS"
                )

    def _stored(self, options: Options, suite: Suite) -> Sequence[StoredCell]:
        """Return the experiment's stored cells; raise InvalidInput if it doesn't belong to this suite."""
        store = self._stores.store_if_any()
        version = store.version() if store else None
        experiment = store.find_experiment(options.experiment) if store else None
        if store is None or experiment is None:
            return ()
        suite_name = experiment.tags.get("tipbench.suite")
        if suite_name is None:
            raise InvalidInput(
                f"experiment '{options.experiment}' was not made by tipbench; choose another name, such as "
                f"{suite.experiment_prefix}1"
            )
        if suite_name != suite.name:
            raise InvalidInput(
                f"experiment '{options.experiment}' belongs to suite '{suite_name}', not '{suite.name}'; choose "
                f"another name, such as {suite.experiment_prefix}1"
            )
        return self._snapshots.get(store, experiment, version).snapshot.cells


class _ProblemCollector:
    """Collects the problems of several checks."""

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextmanager
    def collecting(self, unless: bool = False) -> Iterator[None]:
        """Collect the problems raised in the block; drop them if `unless`, because the check used a default instead."""
        try:
            yield
        except Problems as error:
            self.found += () if unless else error.problems
        except (InvalidInput, EngineError, MissingExtra) as error:
            self.found += () if unless else (str(error),)

    def raise_if_any(self) -> None:
        if self.found:
            raise Problems("the request can't be run:", self.found)


def _is_ready(judge: str, settings: Settings) -> bool:
    try:
        check_judge(judge, settings)
    except InvalidInput:
        return False
    return True


def _offers(options: Options, settings: Settings) -> list[EngineModels]:
    with open_engines(options, settings) as engines:
        return list(engines.offered())


def _remote_offers(options: Options, settings: Settings) -> list[EngineModels]:
    """Return the models of the Ollama servers, which remote runs reach at the same addresses.

    The default server is left out if it can't be reached from here: nobody asked for it.
    """
    found = []
    for url in options.ollama_urls:
        with open_engines(options.model_copy(update={"ollama_url": url}), settings) as engines:
            found.append(engines.models_of(DEFAULT_ENGINE))
    is_default = options.ollama_url == Options.model_fields["ollama_url"].default
    return [one for one in found if one and not (is_default and one.problem)]
