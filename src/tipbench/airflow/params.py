"""The options as typed Airflow Params, which Airflow checks in its form and when a run is triggered."""

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param

from tipbench.airflow.request import FLAGS
from tipbench.bench.options import Options


def table_params(defaults: Mapping[str, Any]) -> dict[str, Param]:
    """Return a Param for each option and flag; `defaults` override the options' own defaults."""
    schema = Options.model_json_schema()["properties"]
    params = {key: _param(key, schema[key], defaults) for key in schema}
    flags = {name: Param(bool(defaults.get(name)), type="boolean", description=text) for name, text in FLAGS.items()}
    return {**params, **flags}


def _param(key: str, schema: Mapping[str, Any], defaults: Mapping[str, Any]) -> Param:
    kinds = schema.get("anyOf", [schema])
    kind = {
        name: value for one in kinds for name, value in one.items() if name not in ("title", "default", "type", "anyOf")
    }
    types = [one["type"] for one in kinds]
    kind["type"] = types if len(types) > 1 else types[0]
    kind["description"] = schema["description"]
    return Param(defaults.get(key, schema["default"]), title=key, **kind)
