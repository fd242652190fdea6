"""All policies by name, with the parameters they are served with."""

from collections.abc import Mapping
from typing import Any

from tipbench.recommender.features.v1 import V1
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.policies.category_mean import CategoryMean
from tipbench.recommender.policies.egreedy import EGreedy
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.policies.linucb import LinUcb

SERVED: Mapping[str, Policy[Any]] = {
    policy.name: policy for policy in (EGreedy("egreedy", V1), EGreedy("egreedy/v2", V2), LinUcb("linucb", V1))
}
POLICIES: Mapping[str, Policy[Any]] = {**SERVED, "category-mean": CategoryMean()}
