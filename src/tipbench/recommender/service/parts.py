"""What the service is made of."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.recommender import Recommender
from tipbench.recommender.shadows.runner import Shadows


@dataclass(frozen=True)
class Parts:
    recommender: Recommender
    policies: Mapping[str, Policy[Any]]  # those that are served, by the names in their paths
    shadows: Shadows
