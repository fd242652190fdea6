"""MLflow's pages in memory: what a server keeps of the calls for traces, prompts and datasets."""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

TAG = re.compile(r"tag\.`([^`]+)` = '([^']*)'")
NAME = re.compile(r"name = '([^']*)'")


class Killed(Exception):
    """The publisher was killed."""


class MadeMlflow:
    """Takes the calls of the REST API. `dies_at` is the call at which the publisher is killed, before or after it."""

    def __init__(self) -> None:
        self.traces: dict[str, dict[str, Any]] = {}
        self.spans: dict[tuple[str, str], dict[str, Any]] = {}
        self.prompts: dict[str, dict[str, Any]] = {}
        self.datasets: dict[str, dict[str, Any]] = {}
        self.calls = 0
        self.dies_at = 0
        self.dies_after_it = False
        self._ids = count(1)

    def content(self) -> dict[str, Any]:
        """Everything but ids that MLflow chooses."""
        datasets = [{**one, "records": sorted(map(repr, one["records"].values()))} for one in self.datasets.values()]
        return copy.deepcopy(
            {"traces": self.traces, "spans": self.spans, "prompts": self.prompts, "datasets": datasets}
        )

    def assessments(self) -> list[dict[str, Any]]:
        return [one for trace in self.traces.values() for one in trace["assessments"].values()]

    def pages(self, path: str, key: str, query: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self.call("POST", path, query)[key]

    def call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        self.calls += 1
        if self.calls == self.dies_at and not self.dies_after_it:
            raise Killed
        answer = self._answer(method, path, json.loads(json.dumps(body or {}, allow_nan=False)), headers or {})
        if self.calls == self.dies_at:
            raise Killed
        return copy.deepcopy(answer)

    def _answer(self, method: str, path: str, body: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        short = path.replace("/api/3.0/mlflow/", "").replace("/api/2.0/mlflow/", "")
        if short.startswith(("traces", "/v1")):
            return self._of_traces(method, short, body, headers)
        if short.startswith("datasets"):
            return self._of_datasets(method, short, body)
        return self._of_prompts(method, short, body)

    def _of_traces(self, method: str, path: str, body: dict[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        if path == "/v1/traces":
            assert headers["x-mlflow-experiment-id"]
            for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]:
                trace_id = f"tr-{span['traceId']}"
                self.spans[trace_id, span["spanId"]] = span
                for attribute in span["attributes"]:
                    if attribute["key"].startswith("mlflow.traceTag."):
                        tag = attribute["key"].removeprefix("mlflow.traceTag.")
                        self.traces[trace_id]["tags"][tag] = attribute["value"]["stringValue"]
            return {}
        if path == "traces":
            info = body["trace"]["trace_info"]
            assessments = {one["assessment_id"]: one for one in info.pop("assessments")}
            known = self.traces.setdefault(info["trace_id"], {"tags": {}, "assessments": {}})
            known["tags"] |= info.pop("tags")
            known["assessments"] |= assessments
            known |= info
            return {}
        if path == "traces/search":
            wanted = dict(TAG.findall(body["filter"]))
            experiment = body["locations"][0]["mlflow_experiment"]["experiment_id"]
            found = [
                {**trace, "assessments": list(trace["assessments"].values())}
                for trace in self.traces.values()
                if wanted.items() <= trace["tags"].items()
                and trace["trace_location"]["mlflow_experiment"]["experiment_id"] == experiment
            ]
            return {"traces": found}
        if path == "traces/delete-traces":
            for trace_id in body["request_ids"]:
                del self.traces[trace_id]
                self.spans = {key: span for key, span in self.spans.items() if key[0] != trace_id}
            return {}
        assert method == "DELETE"
        _, trace_id, _, assessment_id = path.split("/")
        del self.traces[trace_id]["assessments"][assessment_id]
        return {}

    def _of_datasets(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path == "datasets/search":
            found = [
                {"dataset_id": key, "created_time": int(key[1:]), "tags": json.dumps(one["tags"])}
                for key, one in self.datasets.items()
                if set(body["experiment_ids"]) & set(one["experiments"])
            ]
            return {"datasets": found}
        if path == "datasets/create":
            made = f"d{next(self._ids)}"
            tags, name = json.loads(body["tags"]), body["name"]
            self.datasets[made] = {"name": name, "tags": tags, "experiments": body["experiment_ids"], "records": {}}
            return {"dataset": {"dataset_id": made}}
        dataset = path.split("/")[1]
        if path.endswith("/records"):
            records = self.datasets[dataset]["records"]
            if method == "GET":
                listed = [{"dataset_record_id": key, "inputs": one} for key, one in records.items()]
                return {"records": json.dumps(listed)}
            if method == "POST":
                for one in json.loads(body["records"]):
                    if one["inputs"] not in records.values():
                        records[f"r{next(self._ids)}"] = one["inputs"]
                return {}
            for key in body["dataset_record_ids"]:
                del records[key]
            return {}
        del self.datasets[dataset]
        return {}

    def _of_prompts(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        what, action = path.split("/")
        if action == "search":
            [name] = NAME.findall(body["filter"])
            prompt = self.prompts.get(name)
            if what == "registered-models":
                return (
                    {"registered_models": [{"tags": _pairs(prompt["tags"]), "aliases": _aliases(prompt)}]}
                    if prompt
                    else {}
                )
            versions = prompt["versions"] if prompt else {}
            return {"model_versions": [{"version": key, "tags": _pairs(tags)} for key, tags in versions.items()]}
        name = body["name"]
        if path == "registered-models/create":
            self.prompts[name] = {"tags": _dict(body["tags"]), "aliases": {}, "versions": {}}
        elif path == "model-versions/create":
            versions = self.prompts[name]["versions"]
            versions[str(max(map(int, versions), default=0) + 1)] = _dict(body["tags"])
        elif path == "registered-models/set-tag":
            self.prompts[name]["tags"][body["key"]] = body["value"]
        elif path == "model-versions/set-tag":
            self.prompts[name]["versions"][body["version"]][body["key"]] = body["value"]
        elif path == "registered-models/alias":
            assert not re.fullmatch(r"[vV]\d+|latest", body["alias"]), "MLflow refuses it"
            self.prompts[name]["aliases"][body["alias"]] = body["version"]
        elif path == "model-versions/delete":
            prompt = self.prompts[name]
            del prompt["versions"][body["version"]]
            prompt["aliases"] = {key: one for key, one in prompt["aliases"].items() if one != body["version"]}
        else:
            assert (method, path) == ("DELETE", "registered-models/delete")
            del self.prompts[name]
        return {}


def _pairs(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in tags.items()]


def _dict(pairs: list[dict[str, str]]) -> dict[str, str]:
    return {pair["key"]: pair["value"] for pair in pairs}


def _aliases(prompt: Mapping[str, Any]) -> list[dict[str, str]]:
    return [{"alias": alias, "version": version} for alias, version in prompt["aliases"].items()]
