"""Priors for tests."""

from typing import Any

import numpy as np

from tipbench.recommender.features.v3 import DENSE, NAMES


def prior_content(**changes: Any) -> dict[str, Any]:
    """A prior like a ridge of 1, with changes."""
    return {
        "schema": 1,
        "feature_version": "v3",
        "users": 100,
        "rewards": 1000,
        "first_ms": 1,
        "last_ms": 2,
        "mean_reward": 0.2,
        "mean": dict.fromkeys(NAMES[:DENSE], 0.0),
        "precision": np.eye(DENSE)[np.triu_indices(DENSE)].tolist(),
        "intercept_precision": 1.0,
        "noise": 1.0,
        "tips": {},
        **changes,
    }


def means(**changes: float) -> dict[str, float]:
    return {**dict.fromkeys(NAMES[:DENSE], 0.0), **changes}
