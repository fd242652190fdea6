"""Pools, by Airflow's API: without its pool a task waits for ever, and in one of two slots it is not alone."""

from collections.abc import Iterable, Iterator
from typing import Any

from tipbench.airflow.check import Check
from tipbench.airflow.remote.client import AirflowApi, in_path
from tipbench.core.errors import NotFound
from tipbench.core.untrusted import shown

_ABOUT = "One model at a time on this Ollama host; made by 'tipbench airflow init'."


def make_pools(api: AirflowApi, names: Iterable[str]) -> Iterator[Check]:
    """Sees to it that each has one slot, and says what was changed for that."""
    for name in names:
        slots = _slots(api, name)
        if slots is None:
            api.post("/pools", {"name": name, "slots": 1, "description": _ABOUT})
            yield Check(True, "pool", f"{name} was made, with one slot")
        elif slots != 1:
            whole = {"pool": name, "slots": 1, "include_deferred": False}  # Airflow wants more than what changes
            api.patch(f"/pools/{in_path(name)}", whole, update_mask="slots")
            yield Check(True, "pool", f"{name} had {shown(slots)} slots, and was set back to one")
        else:
            yield Check(True, "pool", f"{name} is there, with one slot")


def check_pools(api: AirflowApi, names: Iterable[str]) -> Iterator[Check]:
    for name in names:
        slots = _slots(api, name)
        if slots is None:
            yield Check(False, "pool", f"{name} is missing, so its tasks would wait for ever: tipbench airflow init")
        elif slots != 1:
            yield Check(
                False,
                "pool",
                f"{name} has {shown(slots)} slots, and a model needs its host for itself: tipbench airflow init",
            )
        else:
            yield Check(True, "pool", f"{name} is there, with one slot")


def _slots(api: AirflowApi, name: str) -> Any:
    """As Airflow says it; None: there is no such pool."""
    try:
        return api.get(f"/pools/{in_path(name)}").get("slots", 0)
    except NotFound:
        return None
