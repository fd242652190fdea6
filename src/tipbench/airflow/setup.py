"""Sets an Airflow up for tipbench, or only looks whether it is: the DAG's file, the pools, and what runs need."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tipbench.airflow.check import Check
from tipbench.airflow.dag_file import hosts_in, put_dag_file, read_dag_file
from tipbench.airflow.hosts import pool_name
from tipbench.airflow.known_dag import check_dag, known_dag, wait_until_known
from tipbench.airflow.pools import check_pools, make_pools
from tipbench.airflow.remote.client import AirflowApi
from tipbench.airflow.services import check_health, check_version
from tipbench.bench.options import Options, make_options
from tipbench.core.errors import InvalidInput, TipbenchError
from tipbench.core.untrusted import shown
from tipbench.server.jobs.credentials import refuse_credentials


@dataclass(frozen=True)
class Setup:
    """What the user asked for; without hosts, those of the file that is there, else the default one."""

    folder: Path
    hosts: tuple[str, ...] | None
    only_check: bool
    tell: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def given_hosts(ollama_url: str | None) -> tuple[str, ...] | None:
    """The hosts of the flag, checked; their addresses are shown to everybody who sees Airflow."""
    if ollama_url is None:
        return None
    options: Options = make_options({"ollama_url": ollama_url}, "the flags")
    refuse_credentials(options)
    hosts = options.ollama_urls
    if not (options.ollama_url.isascii() and options.ollama_url.isprintable()):  # it becomes Python, and task names
        raise InvalidInput(f"--ollama-url {shown(ollama_url)} has characters that no address has, such as a line break")
    if len({pool_name(host) for host in hosts}) < len(hosts):
        raise InvalidInput(f"--ollama-url {options.ollama_url}: two of these would share a pool in Airflow; rename one")
    return hosts


def steps(setup: Setup, api: AirflowApi) -> Iterator[Check]:
    """Everything on Airflow's side, each as it is done; what can't be asked because Airflow is away is left out."""
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
    """None where only Airflow knows: the file was changed by hand, or is on another machine."""
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
        known = wait_until_known(api, pools, is_new, setup.tell, setup.clock, setup.sleep)
    if pools is None:
        yield from _pools(setup, api, sorted(known.pools))
    yield from check_dag(known, pools)


def _pools(setup: Setup, api: AirflowApi, names: Sequence[str]) -> Iterator[Check]:
    return check_pools(api, names) if setup.only_check else make_pools(api, names)
