"""Ollama hosts and their pools: one slot each, so that no two models are ever loaded on one host."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from tipbench.airflow.remote.records import COLLECT
from tipbench.bench.options import Options, endpoint
from tipbench.core.untrusted import printable

DEFAULT_HOST: str = Options.model_fields["ollama_url"].default
_LONGEST_LABEL = 250


def slug(url: str) -> str:
    """The host as a part of names in Airflow; two spellings of one endpoint have the same."""
    parts = urlsplit(endpoint(url))
    plain = f"{parts.netloc}{parts.path}".replace("127.0.0.1", "localhost")
    return re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_")


def pool_name(url: str) -> str:
    return f"ollama_{slug(url)}"


def collect_task(number: int, url: str) -> str:
    """The task that collects on this host, the first or a further one of the DAG."""
    return f"{COLLECT}_{slug(url)}" if number else COLLECT


def label_of(model: str) -> str:
    """The model's name for its mapped task; Airflow's database has room for 250 characters, and more fails the task."""
    return printable(model)[:_LONGEST_LABEL]


def spread(sizes: Mapping[str, int], able: Mapping[str, Sequence[int]], hosts: int) -> list[list[str]]:
    """Each host's models: the largest first, each to the host that has least so far, of those that can take it."""
    shares: list[list[str]] = [[] for _ in range(hosts)]
    load = [0] * hosts
    for model in sorted(sizes, key=lambda name: -sizes[name]):
        host = min(able[model], key=lambda number: (load[number], number))
        shares[host].append(model)
        load[host] += sizes[model] or 1
    order = list(sizes)
    return [sorted(share, key=order.index) for share in shares]
