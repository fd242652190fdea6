"""Whether Airflow answers, is one that we know how to talk to, and is at work."""

from collections.abc import Iterator

from tipbench.airflow.check import Check
from tipbench.airflow.remote.client import AirflowApi
from tipbench.airflow.remote.settings import URL
from tipbench.core.errors import NotFound
from tipbench.core.untrusted import printable

TESTED = "3.3.2"
_MAJOR = "3"
_SERVICES = {"scheduler": "airflow scheduler", "dag_processor": "airflow dag-processor"}


def check_version(api: AirflowApi) -> Check:
    try:
        version = str(api.get("/version").get("version", ""))
    except NotFound:
        version = ""
    if not version:
        text = f"what answers at {api.address} says no version, as Airflow {_MAJOR} does; check {URL.name}"
        return Check(False, "airflow", text)
    if version.split(".")[0] != _MAJOR:
        text = (
            f"{api.address} is Airflow {printable(version, 40)}; tipbench needs Airflow {_MAJOR}, tested with {TESTED}"
        )
        return Check(False, "airflow", text)
    tested = "" if version == TESTED else f" (tested with {TESTED})"
    return Check(True, "airflow", f"{api.address}: Airflow {printable(version, 40)}{tested}")


def check_health(api: AirflowApi) -> Iterator[Check]:
    health = api.get("/monitor/health")
    for service, start in _SERVICES.items():
        said = health.get(service)
        status = said.get("status") if isinstance(said, dict) else None
        name = service.replace("_", "-")
        if status == "healthy":
            yield Check(True, name, "healthy")
        else:
            state = "gives no sign of life" if status is None else f"is {printable(str(status), 40)}"
            yield Check(False, name, f"{state}; start it where Airflow runs: {start}")
