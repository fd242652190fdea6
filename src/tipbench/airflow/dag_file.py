"""The file in Airflow's DAGs folder that imports the DAG."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from tipbench.airflow.hosts import DEFAULT_HOST
from tipbench.airflow.remote.records import DAG_ID
from tipbench.core.errors import InvalidInput
from tipbench.core.files import atomic_write

FILE = f"{DAG_ID}.py"
_ONE_HOST = 'from tipbench.airflow.dag import dag  # Airflow reads files that hold the words "airflow" and "dag"\n'
_HOSTS = "from tipbench.airflow.dag import bench_collect\n\ndag = bench_collect(%s)\n"
_OUR_MODULE = "tipbench.airflow.dag"


def dag_text(hosts: Sequence[str]) -> str:
    if list(hosts) == [DEFAULT_HOST]:
        return _ONE_HOST
    return _HOSTS % ", ".join(json.dumps(host) for host in hosts)


def hosts_in(text: str) -> tuple[str, ...] | None:
    """Return the hosts in a file that we wrote; None for one that was written or changed by somebody else."""
    if text == _ONE_HOST:
        return (DEFAULT_HOST,)
    found = re.search(r"^dag = bench_collect\((.+)\)$", text, re.MULTILINE)
    try:
        hosts = json.loads(f"[{found[1]}]") if found else []
    except ValueError:
        return None
    is_ours = all(isinstance(host, str) for host in hosts) and dag_text(hosts) == text
    return tuple(hosts) if is_ours else None


def read_dag_file(folder: Path) -> str | None:
    try:
        return (folder / FILE).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


def put_dag_file(folder: Path, hosts: Sequence[str] | None) -> tuple[bool, str]:
    """Write the DAG's file if needed; return whether it was written, and a message.

    Without `hosts`, the hosts in an existing file are kept. A file that imports our DAG but was changed by the user,
    as to set a schedule or defaults, is left as it is. Raises InvalidInput for a file of something else.
    """
    path = folder / FILE
    found = read_dag_file(folder)
    if found is not None and hosts_in(found) is None:
        if _OUR_MODULE not in found:
            raise InvalidInput(
                f"{path} exists and is not tipbench's DAG; nothing was changed. Move it away, or choose another "
                "folder with --dags-folder"
            )
        return False, f"{path} was changed by hand and is left unchanged"
    text = dag_text(hosts or (found and hosts_in(found)) or [DEFAULT_HOST])
    if found == text:
        return False, f"{path} is unchanged"
    _write(path, text)
    return True, f"{path} was {'written' if found is None else 'replaced'}"


def _write(path: Path, text: str) -> None:
    """Write atomically: Airflow may read the folder at any moment."""
    try:
        path.parent.mkdir(exist_ok=True)
    except FileNotFoundError:
        raise InvalidInput(
            f"{path.parent.parent} does not exist; set AIRFLOW_HOME as for Airflow's services, or name the DAGs "
            "folder with --dags-folder"
        ) from None
    atomic_write(path, text)
