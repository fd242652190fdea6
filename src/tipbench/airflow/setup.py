"""Sets up an Airflow for tipbench, or only checks it: the DAG's file, the pools, and what runs need."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tipbench.airflow.dag_file import hosts_in, put_dag_file, read_dag_file
from tipbench.airflow.hosts import pool_name
from tipbench.airflow.known_dag import check_dag, known_dag, wait_until_known
from tipbench.airflow.prerequisites import Check
from tipbench.airflow.remote.client import URL, AirflowApi, path_segment
from tipbench.bench.options import Options, make_options
from tipbench.core.errors import InvalidInput, NotFound, TipbenchError
from tipbench.core.untrusted import printable, shown
from tipbench.server.jobs.simulation_asked import refuse_credentials

TESTED = "3.3.2"
_MAJOR = "3"
_SERVICES = {"scheduler": "airflow scheduler", "dag_processor": "airflow dag-processor"}
_POOL_DESCRIPTION = "One model at a time on this Ollama host; created by 'tipbench airflow init'."


# Airflow itself: does it answer, is its version supported, are its services running?


def check_version(api: AirflowApi) -> Check:
    try:
        version = str(api.get("/version").get("version", ""))
    except NotFound:
        version = ""
    if not version:
        text = f"the server at {api.address} reports no version, as Airflow {_MAJOR} does; check {URL.name}"
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
        reported = health.get(service)
        status = reported.get("status") if isinstance(reported, dict) else None
        name = service.replace("_", "-")
        if status == "healthy":
            yield Check(True, name, "healthy")
        else:
            state = "does not respond" if status is None else f"is {printable(str(status), 40)}"
            yield Check(False, name, f"{state}; start it where Airflow runs: {start}")


# Pools: without its pool a task waits forever; with more than one slot, two models could run on one host.


def make_pools(api: AirflowApi, names: Iterable[str]) -> Iterator[Check]:
    """Ensure that each pool exists with one slot, and report what was changed."""
    for name in names:
        slots = _slots(api, name)
        if slots is None:
            api.post("/pools", {"name": name, "slots": 1, "description": _POOL_DESCRIPTION})
            yield Check(True, "pool", f"{name} was created, with one slot")
        elif slots != 1:
            body = {"pool": name, "slots": 1, "include_deferred": False}  # Airflow requires more than what changes
            api.patch(f"/pools/{path_segment(name)}", body, update_mask="slots")
            yield Check(True, "pool", f"{name} had {shown(slots)} slots and was reset to one")
        else:
            yield Check(True, "pool", f"{name} exists, with one slot")


def check_pools(api: AirflowApi, names: Iterable[str]) -> Iterator[Check]:
    for name in names:
        slots = _slots(api, name)
        if slots is None:
            yield Check(False, "pool", f"{name} is missing, so its tasks would wait forever: tipbench airflow init")
        elif slots != 1:
            yield Check(
                False,
                "pool",
                f"{name} has {shown(slots)} slots, but a model needs its host to itself: tipbench airflow init",
            )
        else:
            yield Check(True, "pool", f"{name} exists, with one slot")


def _slots(api: AirflowApi, name: str) -> Any:
    """Return the pool's number of slots as Airflow reports it; None if there is no such pool."""
    try:
        return api.get(f"/pools/{path_segment(name)}").get("slots", 0)
    except NotFound:
        return None


@dataclass(frozen=True)
class Setup:
    """What the user asked for. Without `hosts`, those in the existing file are used, or else the default one."""

    folder: Path
    hosts: tuple[str, ...] | None
    only_check: bool
    report: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def given_hosts(ollama_url: str | None) -> tuple[str, ...] | None:
    """Parse the hosts of the flag; raise InvalidInput for credentials, as everybody in Airflow sees the addresses."""
    if ollama_url is None:
        return None
    options: Options = make_options({"ollama_url": ollama_url}, "the flags")
    refuse_credentials(options)
    hosts = options.ollama_urls
    if not (
        options.ollama_url.isascii() and options.ollama_url.isprintable()
    ):  # it becomes part of a Python file and of task names
        raise InvalidInput(
            f"--ollama-url {shown(ollama_url)} contains characters that addresses don't have, such as a line break"
        )
    if len({pool_name(host) for host in hosts}) < len(hosts):
        raise InvalidInput(f"--ollama-url {options.ollama_url}: two of these would share a pool in Airflow; rename one")
    return hosts


def steps(setup: Setup, api: AirflowApi) -> Iterator[Check]:
    """Set up or check everything in Airflow, yielding each result as it is done; stop if Airflow can't be reached."""
    is_new = False
    if not setup.only_check:
        is_new, text = put_dag_file(setup.folder, setup.hosts)
        yield Check(True, "file", text)
    try:
        version = check_version(api)
        yield version
        if version.good:
            yield from check_health(api)
            yield from _pools_and_dag(setup, api, is_new)
    except TipbenchError as error:
        yield Check(False, "airflow", str(error))


def expected_hosts(setup: Setup) -> tuple[str, ...] | None:
    """Return the hosts of the DAG; None if only Airflow knows: the file was changed by hand or is elsewhere."""
    found = read_dag_file(setup.folder)
    return setup.hosts or (hosts_in(found) if found is not None else None)


def _pools_and_dag(setup: Setup, api: AirflowApi, is_new: bool) -> Iterator[Check]:
    hosts = expected_hosts(setup)
    pools = None if hosts is None else [pool_name(host) for host in hosts]
    if pools is not None:
        yield from _pools(setup, api, pools)
    if setup.only_check:
        known = known_dag(api)
    else:
        known = wait_until_known(api, pools, is_new, setup.report, setup.clock, setup.sleep)
    if pools is None:
        yield from _pools(setup, api, sorted(known.pools))
    yield from check_dag(known, pools)


def _pools(setup: Setup, api: AirflowApi, names: Sequence[str]) -> Iterator[Check]:
    return check_pools(api, names) if setup.only_check else make_pools(api, names)
