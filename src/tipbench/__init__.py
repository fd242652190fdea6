"""tipbench: which small local model, with which prompt, writes the best short texts, and which one to show now.

`Bench` and `Recommender` are the two front doors; docs/python.md shows how to use them.
"""

from typing import TYPE_CHECKING, Any

from tipbench.core.version import __version__

if TYPE_CHECKING:
    from tipbench.bench.bench import Bench
    from tipbench.bench.context import Context, Observer
    from tipbench.bench.suites.load import load_suite
    from tipbench.recommender.recommender import Recommender

__all__ = ["Bench", "Context", "Observer", "Recommender", "__version__", "load_suite"]
_MODULES = {
    "Bench": "tipbench.bench.bench",
    "Context": "tipbench.bench.context",
    "Observer": "tipbench.bench.context",
    "Recommender": "tipbench.recommender.recommender",
    "load_suite": "tipbench.bench.suites.load",
}


def __getattr__(name: str) -> Any:
    """Import a front door when somebody asks for it: a command that needs none of them starts sooner."""
    if name not in _MODULES:
        raise AttributeError(f"module 'tipbench' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULES[name]), name)
