"""Ollama hosts and their Airflow pools: one slot each, so that a host never has two models loaded."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from tipbench.airflow.remote.records import COLLECT
from tipbench.bench.options import Options, endpoint
from tipbench.core.untrusted import printable

DEFAULT_HOST: str = Options.model_fields["ollama_url"].default
_MAX_LABEL_CHARS = 250


def slug(url: str) -> str:
    """Return the host in a form for names in Airflow; the same for all spellings of an endpoint."""
    parts = urlsplit(endpoint(url))
    plain = f"{parts.netloc}{parts.path}".replace("127.0.0.1", "localhost")
    return re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")


def pool_name(url: str) -> str:
    return f"ollama_{slug(url)}"


def collect_task(index: int, url: str) -> str:
    """Return the id of the task that collects on the host with this index in the DAG."""
    return f"{COLLECT}_{slug(url)}" if index else COLLECT


def label_of(model: str) -> str:
    """Return the label of a model's mapped task, cut to what Airflow's database can store; more would fail the task."""
    return printable(model)[:_MAX_LABEL_CHARS]


def spread(sizes: Mapping[str, int], candidates: Mapping[str, Sequence[int]], hosts: int) -> list[list[str]]:
    """Return each host's models, assigned greedily: largest first, to the candidate host with the least load so far."""
    shares: list[list[str]] = [[] for _ in range(hosts)]
    load = [0] * hosts
    for model in sorted(sizes, key=lambda name: -sizes[name]):
        host = min(candidates[model], key=lambda index: (load[index], index))
        shares[host].append(model)
        load[host] += sizes[model] or 1
    order = list(sizes)
    return [sorted(share, key=order.index) for share in shares]
