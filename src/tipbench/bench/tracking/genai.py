"""MLflow's calls for traces, assessments, prompts and evaluation datasets, over its REST API."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tipbench.bench.tracking.interface import RestApi
from tipbench.core.errors import TrackingError

_V2, _V3 = "/api/2.0/mlflow", "/api/3.0/mlflow"
_PAGE = 500  # traces; MLflow accepts no more
_AT_ONCE = 100  # traces in a request to delete or link them
_IS_PROMPT = "mlflow.prompt.is_prompt"


@dataclass(frozen=True)
class StoredTrace:
    """A trace as it is found in MLflow."""

    id: str
    tags: Mapping[str, str]
    assessment_ids: frozenset[str]


@dataclass(frozen=True)
class PromptVersion:
    """A version of a prompt in the registry."""

    version: str
    tags: Mapping[str, str]


@dataclass(frozen=True)
class RegisteredPrompt:
    """A prompt in the registry, with its aliases: alias → version."""

    tags: Mapping[str, str]
    aliases: Mapping[str, str]


@dataclass(frozen=True)
class Dataset:
    """An evaluation dataset; `created_ms` is when it was created."""

    id: str
    created_ms: int
    tags: Mapping[str, str] = field(default_factory=dict)


class GenAi:
    """The calls; each either takes effect completely or raises TrackingError."""

    def __init__(self, rest: RestApi) -> None:
        self._rest = rest

    # Traces

    def traces(self, experiment_id: str, tags: Mapping[str, str]) -> Iterator[StoredTrace]:
        """Yield the experiment's traces with these tags."""
        location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": experiment_id}}
        condition = " AND ".join(f"tag.`{key}` = '{value}'" for key, value in tags.items())
        query = {"locations": [location], "filter": condition, "max_results": _PAGE}
        for entry in self._rest.pages(f"{_V3}/traces/search", "traces", query):
            with _parsing():
                assessments = frozenset(one["assessment_id"] for one in entry.get("assessments", ()))
                trace = StoredTrace(entry["trace_id"], entry.get("tags", {}), assessments)
            yield trace

    def write_trace(self, info: Mapping[str, Any]) -> None:
        """Create the trace with its assessments, or bring it up to date; assessments that it has besides stay."""
        self._rest.call("POST", f"{_V3}/traces", {"trace": {"trace_info": info}})

    def write_spans(self, experiment_id: str, spans: Sequence[Mapping[str, Any]]) -> None:
        """Write spans of any number of traces, and the tags of traces that are among the spans' attributes."""
        body = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": spans}]}]}
        self._rest.call("POST", "/v1/traces", body, {"x-mlflow-experiment-id": experiment_id})

    def delete_traces(self, experiment_id: str, trace_ids: Sequence[str]) -> None:
        for start in range(0, len(trace_ids), _AT_ONCE):
            body = {"experiment_id": experiment_id, "request_ids": trace_ids[start : start + _AT_ONCE]}
            self._rest.call("POST", f"{_V3}/traces/delete-traces", body)

    def delete_assessment(self, trace_id: str, assessment_id: str) -> None:
        self._rest.call("DELETE", f"{_V3}/traces/{trace_id}/assessments/{assessment_id}")

    # Prompts: MLflow stores them as registered models with a tag

    def prompt(self, name: str) -> RegisteredPrompt | None:
        condition = f"name = '{name}' AND tags.`{_IS_PROMPT}` = 'true'"
        found = self._rest.call("GET", f"{_V2}/registered-models/search", {"filter": condition, "max_results": 1})
        with _parsing():
            for entry in found.get("registered_models", ()):
                aliases = {one["alias"]: str(one["version"]) for one in entry.get("aliases", ())}
                return RegisteredPrompt(_tags(entry), aliases)
        return None

    def create_prompt(self, name: str, description: str, tags: Mapping[str, str]) -> None:
        body = {"name": name, "description": description, "tags": _pairs({_IS_PROMPT: "true", **tags})}
        self._rest.call("POST", f"{_V2}/registered-models/create", body)

    def tag_prompt(self, name: str, key: str, value: str) -> None:
        self._rest.call("POST", f"{_V2}/registered-models/set-tag", {"name": name, "key": key, "value": value})

    def delete_prompt(self, name: str) -> None:
        self._rest.call("DELETE", f"{_V2}/registered-models/delete", {"name": name})

    def prompt_versions(self, name: str) -> list[PromptVersion]:
        """Return the versions of a prompt, oldest first."""
        condition = f"name = '{name}' AND tags.`{_IS_PROMPT}` = 'true'"
        found = self._rest.call("GET", f"{_V2}/model-versions/search", {"filter": condition, "max_results": 10_000})
        with _parsing():
            versions = [PromptVersion(str(entry["version"]), _tags(entry)) for entry in found.get("model_versions", ())]
            return sorted(versions, key=lambda one: int(one.version))

    def create_prompt_version(
        self, name: str, messages: Sequence[Mapping[str, str]], description: str, tags: Mapping[str, str]
    ) -> None:
        """Register chat messages as a new version of the prompt."""
        text = {"_mlflow_prompt_type": "chat", "mlflow.prompt.text": json.dumps(messages, ensure_ascii=False)}
        body = {
            "name": name,
            "source": "dummy-source",  # MLflow requires one, and accepts no other for prompts
            "description": description,
            "tags": _pairs({_IS_PROMPT: "true", **text, **tags}),
        }
        self._rest.call("POST", f"{_V2}/model-versions/create", body)

    def tag_prompt_version(self, name: str, version: str, key: str, value: str) -> None:
        body = {"name": name, "version": version, "key": key, "value": value}
        self._rest.call("POST", f"{_V2}/model-versions/set-tag", body)

    def delete_prompt_version(self, name: str, version: str) -> None:
        """Delete the version, and the aliases that point to it."""
        self._rest.call("DELETE", f"{_V2}/model-versions/delete", {"name": name, "version": version})

    def set_prompt_alias(self, name: str, alias: str, version: str) -> None:
        body = {"name": name, "alias": alias, "version": version}
        self._rest.call("POST", f"{_V2}/registered-models/alias", body)

    # Evaluation datasets

    def datasets(self, experiment_id: str) -> list[Dataset]:
        """Return the experiment's datasets, oldest first."""
        query = {"experiment_ids": [experiment_id], "max_results": 1_000}
        with _parsing():
            found = [
                Dataset(entry["dataset_id"], int(entry["created_time"]), json.loads(entry.get("tags") or "{}"))
                for entry in self._rest.pages(f"{_V3}/datasets/search", "datasets", query)
            ]
        return sorted(found, key=lambda one: (one.created_ms, one.id))

    def create_dataset(self, name: str, experiment_id: str, tags: Mapping[str, str]) -> str:
        """Create a dataset of the experiment, and return its id."""
        body = {"name": name, "experiment_ids": [experiment_id], "tags": json.dumps(tags)}
        made = self._rest.call("POST", f"{_V3}/datasets/create", body)
        with _parsing():
            return str(made["dataset"]["dataset_id"])

    def delete_dataset(self, dataset_id: str) -> None:
        self._rest.call("DELETE", f"{_V3}/datasets/{dataset_id}")

    def records(self, dataset_id: str) -> dict[str, dict[str, Any]]:
        """Return the inputs of the records, by id."""
        found: dict[str, dict[str, Any]] = {}
        token = ""
        while True:
            query = {"max_results": 1_000, **({"page_token": token} if token else {})}
            page = self._rest.call("GET", f"{_V3}/datasets/{dataset_id}/records", query)
            with _parsing():
                records = json.loads(page.get("records") or "[]")
                found |= {record["dataset_record_id"]: record["inputs"] for record in records}
            token = page.get("next_page_token", "")
            if not token:
                return found

    def upsert_records(self, dataset_id: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Add records, or merge them with those of the same inputs."""
        self._rest.call("POST", f"{_V3}/datasets/{dataset_id}/records", {"records": json.dumps(records)})

    def delete_records(self, dataset_id: str, record_ids: Sequence[str]) -> None:
        self._rest.call("DELETE", f"{_V3}/datasets/{dataset_id}/records", {"dataset_record_ids": record_ids})


@contextmanager
def _parsing() -> Iterator[None]:
    """Raise TrackingError if an answer read in the block is not as MLflow documents it."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise TrackingError(f"MLflow answered something else than expected: {error!r}; 3.17 is tested") from error


def _pairs(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in values.items()]


def _tags(entry: Mapping[str, Any]) -> dict[str, str]:
    return {tag["key"]: tag.get("value", "") for tag in entry.get("tags", ())}
