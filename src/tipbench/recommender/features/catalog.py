"""All feature versions by name."""

from collections.abc import Mapping

from tipbench.recommender.features.interface import CATEGORY, Features
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.features.v2 import V2

FEATURES: Mapping[str, Features] = {features.version: features for features in (V1, V2, CATEGORY)}
