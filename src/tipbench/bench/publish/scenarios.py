"""The scenarios of an experiment as one of MLflow's evaluation datasets."""

from collections.abc import Callable, Iterable
from typing import Any

from tipbench.bench.records import StoredCell
from tipbench.bench.tracking.genai import Dataset, GenAi
from tipbench.bench.tracking.interface import Experiment
from tipbench.core.untrusted import storable

_KIND, _SCENARIOS = "tipbench.kind", "scenarios"


def publish_scenarios(
    api: GenAi, experiment: Experiment, cells: Iterable[StoredCell], about: Callable[[str], str]
) -> int:
    """Make the dataset hold exactly the scenarios of these cells, and return how many there are."""
    wanted = [scenario_inputs(cell, about(cell.scenario)) for cell in {one.scenario: one for one in cells}.values()]
    found = _ours(api, experiment)
    for double in found[1:]:  # made by two publishers at the same time
        api.delete_dataset(double.id)
    dataset = found[0].id if found else _create(api, experiment)
    present = api.records(dataset)
    stale = [record for record, inputs in present.items() if inputs not in wanted]
    if stale:
        api.delete_records(dataset, stale)
    missing = [{"inputs": inputs} for inputs in wanted if inputs not in present.values()]
    if missing:
        api.upsert_records(dataset, missing)
    return len(wanted)


def scenario_inputs(cell: StoredCell, about: str) -> dict[str, Any]:
    """Return a scenario as the inputs of a record, and of every trace of it."""
    return {"scenario": cell.scenario, "about": storable(about).text, **cell.factors}


def take_back_scenarios(api: GenAi, experiment: Experiment) -> None:
    for dataset in _ours(api, experiment):
        api.delete_dataset(dataset.id)


def _ours(api: GenAi, experiment: Experiment) -> list[Dataset]:
    return [one for one in api.datasets(experiment.id) if one.tags.get(_KIND) == _SCENARIOS]


def _create(api: GenAi, experiment: Experiment) -> str:
    suite = experiment.tags.get("tipbench.suite", "")
    return api.create_dataset(
        f"{experiment.name} scenarios", experiment.id, {_KIND: _SCENARIOS, "tipbench.suite": suite}
    )
