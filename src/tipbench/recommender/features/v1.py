"""Version 1, seven dimensions: the hour, and properties of the candidate.

The first three are the same for all candidates of a request, so they can't change which one is best; they let the
regression tell a good hour from a good tip. Formulas and rationale: docs/decisions/0012.
"""

import math

from tipbench.recommender.features.interface import Features
from tipbench.recommender.records import Request

NAMES = ("bias", "hour_sin", "hour_cos", "focus_match", "length", "effort", "recency")
_LONGEST = 2000
_LENGTHS = [math.log(1 + length) / math.log(1 + _LONGEST) for length in range(_LONGEST + 1)]  # the feature, by length
_LARGEST_EFFORT_MIN = 60.0
_FORGOTTEN_AFTER_H = 24.0


def rows(request: Request) -> list[list[float]]:
    angle = math.tau * request.context.hour / 24
    sine, cosine, focus = math.sin(angle), math.cos(angle), request.context.focus_category
    lengths, exp = _LENGTHS, math.exp  # every candidate of every request passes here: no calls but the exponential
    return [
        [
            1.0,
            sine,
            cosine,
            1.0 if candidate.category == focus else 0.0,
            lengths[candidate.len_chars] if candidate.len_chars < _LONGEST else 1.0,
            effort / _LARGEST_EFFORT_MIN if (effort := candidate.effort_min or 0.0) < _LARGEST_EFFORT_MIN else 1.0,
            0.0 if (since_h := candidate.hours_since_shown) is None else exp(-since_h / _FORGOTTEN_AFTER_H),
        ]
        for candidate in request.candidates
    ]


V1 = Features("v1", NAMES, rows)
