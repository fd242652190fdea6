"""All policies by name, with the parameters they are served with, and the identity of a policy with a prior.

Two policies with different priors are different, although they share users' states. So a policy is identified by its
name, and by the prior's digest if it has one: `ucb/v3@0c3f1a9e5b7d2468`.
"""

from collections.abc import Mapping
from typing import Any

from tipbench.core.errors import InvalidInput, NotFound
from tipbench.core.untrusted import shown
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.features.v2 import V2
from tipbench.recommender.policies.category_mean import CategoryMean
from tipbench.recommender.policies.egreedy import DECAY, Decay, EGreedy
from tipbench.recommender.policies.interface import Policy
from tipbench.recommender.policies.linucb import LinUcb
from tipbench.recommender.policies.ucb import Ucb
from tipbench.recommender.prior.interface import ReadPrior

SERVED: Mapping[str, Policy[Any]] = {
    policy.name: policy
    for policy in (
        EGreedy("egreedy", V1),
        EGreedy("egreedy/v2", V2),
        LinUcb("linucb", V1),
        Ucb("egreedy/v3", sds=0.0, decay=DECAY),
        Ucb("ucb/v3", sds=0.5, decay=Decay(first=0.05, floor=0.05)),
    )
}
POLICIES: Mapping[str, Policy[Any]] = {**SERVED, "category-mean": CategoryMean()}


def name_of(identity: str) -> str:
    """Return the policy's name, under which users' states are stored."""
    return identity.partition("@")[0]


def prior_of(identity: str) -> str | None:
    """Return the digest of the policy's prior; None if it has none."""
    return identity.partition("@")[2] or None


def takes_prior(policy: Policy[Any]) -> bool:
    return isinstance(policy, Ucb)


def fitted_until(policy: Policy[Any]) -> int:
    """Return the time of the last decision that the policy's prior was fitted to; -1 if it has no prior."""
    return policy.prior.last_ms if isinstance(policy, Ucb) else -1


def identity_of(policy: Policy[Any]) -> str:
    prior = policy.parameters.get("prior")
    return f"{policy.name}@{prior}" if prior else policy.name


def policy_of(identity: str, read_prior: ReadPrior, known: Mapping[str, Policy[Any]] = POLICIES) -> Policy[Any]:
    """Return the policy of an identity; raise NotFound for an unknown policy or prior."""
    name, digest = name_of(identity), prior_of(identity)
    if name not in known:
        raise NotFound(f"there is no policy {shown(name)}; there are {', '.join(known)}")
    policy = known[name]
    if digest is None:
        return policy
    if not isinstance(policy, Ucb):
        raise InvalidInput(f"{name} takes no prior, so there is no {shown(identity)}; name {name} alone")
    return policy.with_prior(read_prior(digest).prior)
