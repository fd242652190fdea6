"""The DAG's file as Airflow reads it: quickly, one DAG, the right one."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.airflow_server import VENV
from tipbench.airflow.dag_file import dag_text
from tipbench.airflow.hosts import DEFAULT_HOST
from tipbench.bench.options import Options

pytestmark = pytest.mark.skipif(not VENV.exists(), reason="'make airflow' installs it")

_READ = """
import json, sys, time
import airflow.sdk, airflow.providers.standard.operators.hitl, airflow.providers.standard.operators.empty
from airflow.sdk.definitions._internal.contextmanager import DagContext
DagContext.current_autoregister_module_name = "bench_collect"
begun = time.process_time()
import importlib.util
spec = importlib.util.spec_from_file_location("bench_collect", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules["bench_collect"] = module
spec.loader.exec_module(module)
took = time.process_time() - begun
dag = module.dag
print(json.dumps({
    "took": took,
    "dags": [one.dag_id for one, _ in DagContext.autoregistered_dags],
    "same": [one is dag for one, _ in DagContext.autoregistered_dags],
    "tasks": {task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks},
    "pools": {task.task_id: task.pool for task in dag.tasks},
    "params": {name: dag.params.get_param(name).serialize() for name in dag.params},
    "ours": sorted(name for name in sys.modules if name.startswith("tipbench.")),
    "schedule": dag.schedule,
}))
"""


def read(path: Path) -> dict[str, Any]:
    environment = {**os.environ, "AIRFLOW_HOME": str(path.parent / "home"), "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}
    done = subprocess.run(
        [str(VENV / "bin" / "python"), "-c", _READ, str(path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def one_host(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What Airflow finds in the file of the default host."""
    path = tmp_path_factory.mktemp("dags") / "bench_collect.py"
    path.write_text(dag_text([DEFAULT_HOST]))
    return read(path)


def test_the_file_of_the_checkout_is_the_one_that_init_writes() -> None:
    path = Path(__file__).parents[2] / "dags" / "bench_collect.py"
    assert path.read_text() == dag_text([DEFAULT_HOST])
    assert len(path.read_text().splitlines()) == 1


def test_reading_it_takes_little_and_imports_little(one_host: dict[str, Any]) -> None:
    assert one_host["took"] < 0.3
    heavy = {
        "tipbench.bench.bench",
        "tipbench.bench.engines",
        "tipbench.bench.tracking",
        "tipbench.bench.suites",
        "tipbench.bench.judge",
    }
    assert heavy.isdisjoint(one_host["ours"])


def test_the_phases_follow_each_other(one_host: dict[str, Any]) -> None:
    assert one_host["dags"] == ["bench_collect"]
    assert one_host["tasks"] == {
        "plan": ["collect"],
        "collect": ["complete", "export_for_judge"],
        "export_for_judge": ["judge"],
        "judge": ["wait_for_judge"],
        "wait_for_judge": ["compare"],
        "compare": ["complete"],
        "complete": [],
    }
    assert one_host["pools"]["collect"] == "ollama_localhost_11434"


def test_every_key_of_the_table_is_a_typed_param(one_host: dict[str, Any]) -> None:
    params = one_host["params"]
    assert set(params) == {*Options.model_fields, "retry_failed", "fresh"}
    assert {
        key: param["value"] for key, param in params.items() if key in Options.model_fields
    } == Options().model_dump()
    types = {key: param["schema"]["type"] for key, param in params.items()}
    assert (types["n_tips"], types["temperature"], types["judge"]) == ("integer", "number", ["string", "null"])
    assert (types["diversity"], types["concurrency"], types["fresh"]) == ("boolean", ["integer", "null"], "boolean")
    assert params["unload"]["schema"]["enum"] == ["call", "model"]
    assert params["n_tips"]["schema"]["minimum"] == 1
    assert all(param["description"] for param in params.values())


def test_several_hosts_a_schedule_and_defaults(tmp_path: Path) -> None:
    path = tmp_path / "bench_collect.py"
    path.write_text(
        "from tipbench.airflow.dag import bench_collect\n"
        'dag = bench_collect("http://gpu1:11434/", "http://gpu2:11434", schedule="@weekly", n_tips=3, judge="model")\n'
    )
    found = read(path)
    assert (found["dags"], found["same"]) == (["bench_collect"], [True]), "importing the module makes no other DAG"
    assert found["tasks"]["plan"] == ["collect", "plan_gpu2_11434"]
    assert found["tasks"]["collect_gpu2_11434"] == ["complete", "export_for_judge"]
    assert found["pools"]["collect"] == found["pools"]["judge"] == "ollama_gpu1_11434"
    assert found["pools"]["collect_gpu2_11434"] == "ollama_gpu2_11434"
    assert found["params"]["ollama_url"]["value"] == "http://gpu1:11434,http://gpu2:11434"
    assert (found["params"]["n_tips"]["value"], found["params"]["judge"]["value"]) == (3, "model")
    assert found["schedule"] == "@weekly"
