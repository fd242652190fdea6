"""From what a store keeps to the state that a policy works with."""

from typing import Any

from tipbench.core.errors import StateDamaged, StateRefused
from tipbench.recommender.policies.interface import Policy, State
from tipbench.recommender.store.interface import UserState


def known_state(policy: Policy[Any], user_state: UserState | None) -> State:
    """A new one where nothing is kept. One that was made of other features is refused: its sums mean something else."""
    if user_state is None:
        fresh: State = policy.new_state()
        return fresh
    if user_state.feature_version != policy.features.version:
        raise StateRefused(
            f"this user's state for {policy.name} is made of features {user_state.feature_version!r}, and it now "
            f"uses {policy.features.version!r}; reset the user to begin anew"
        )
    try:
        known: State = policy.state_of(user_state.state)
    except (ValueError, OverflowError) as error:
        raise StateDamaged(f"this user's state for {policy.name} is damaged: {error}; reset the user") from error
    return known
