"""The policies by name, each with the parameters that it is served with."""

from collections.abc import Mapping
from typing import Any

from tipbench.bandit.features.v1 import V1
from tipbench.bandit.features.v2 import V2
from tipbench.bandit.policies.category_mean import CategoryMean
from tipbench.bandit.policies.egreedy import EGreedy
from tipbench.bandit.policies.interface import Policy
from tipbench.bandit.policies.linucb import LinUcb

SERVED: Mapping[str, Policy[Any]] = {
    policy.name: policy for policy in (EGreedy("egreedy", V1), EGreedy("egreedy/v2", V2), LinUcb("linucb", V1))
}
POLICIES: Mapping[str, Policy[Any]] = {**SERVED, "category-mean": CategoryMean()}
