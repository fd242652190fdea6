"""Version 1, seven dimensions: the hour, and properties of the candidate.

The first three are the same for all candidates of a request, so they can't change which one is best; they let the
regression tell a good hour from a good tip. Formulas and rationale: docs/decisions/0012.
"""

import math

from tipbench.recommender.features.interface import Features
from tipbench.recommender.records import Candidate, Request

NAMES = ("bias", "hour_sin", "hour_cos", "focus_match", "length", "effort", "recency")
_LONGEST = 2000
_LOG_LONGEST = math.log(1 + _LONGEST)
_LARGEST_EFFORT_MIN = 60.0
_FORGOTTEN_AFTER_H = 24.0


def rows(request: Request) -> list[list[float]]:
    angle = math.tau * request.context.hour / 24
    moment = [1.0, math.sin(angle), math.cos(angle)]
    focus = request.context.focus_category
    return [[*moment, *_candidate_features(candidate, focus)] for candidate in request.candidates]


def _candidate_features(candidate: Candidate, focus: str | None) -> tuple[float, float, float, float]:
    since_h = candidate.hours_since_shown
    return (
        1.0 if candidate.category == focus else 0.0,
        math.log(1 + min(candidate.len_chars, _LONGEST)) / _LOG_LONGEST,
        min((candidate.effort_min or 0.0) / _LARGEST_EFFORT_MIN, 1.0),
        0.0 if since_h is None else math.exp(-since_h / _FORGOTTEN_AFTER_H),
    )


V1 = Features("v1", NAMES, rows)
