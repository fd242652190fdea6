"""The Open Bandit Pipeline imports torch for policies that are not measured here. Torch is 200 MB and more, so an empty
module stands in for it; everything that is measured is obp's own code on real numpy and scikit-learn.
"""

import sys


class _AnyName(type):
    def __getattr__(cls, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls


class _NoTorch(metaclass=_AnyName):
    """Has every name, and does nothing."""


def stand_in_for_torch() -> None:
    """Before obp is imported."""
    sys.modules.update(dict.fromkeys(("torch", "torch.nn", "torch.nn.functional", "torch.optim"), _NoTorch))  # type: ignore[arg-type]
