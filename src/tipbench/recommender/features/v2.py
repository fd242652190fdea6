"""Version 2, twelve dimensions: version 1, and what this user did with tips of the candidate's category.

A number that is the same for all candidates cancels out when they are compared, so each of the five is about the
candidate's category, shrunk towards the user's overall rate while there is little data. Formulas and rationale:
docs/decisions/0012.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from tipbench.recommender.features import v1
from tipbench.recommender.features.interface import Features
from tipbench.recommender.records import CategoryProfile, Profile, Request

NAMES = (*v1.NAMES, "completion", "dismissal", "dwell", "hour_alignment", "volume")
LONGEST_DWELL_S = 600.0
_NEUTRAL = 0.0
_NEUTRALS = (_NEUTRAL,) * 5
_USUAL_RATE = 0.3
_SHRINKAGE = 5.0
_SHRINKAGE_OF_HOURS = 3.0
_LOG_DWELL = math.log(1 + LONGEST_DWELL_S)
_NEUTRAL_DWELL_S = math.sqrt(1 + LONGEST_DWELL_S) - 1  # 23.5 s, which maps to 0 on the log scale
_LARGE_VOLUME = 1000.0
_LOG_VOLUME = math.log(1 + _LARGE_VOLUME)
_NEVER_SHOWN = CategoryProfile(shown=0.0, completed=0.0, dismissed=0.0, mean_dwell_s=0.0, hour_sin=0.0, hour_cos=0.0)
_ProfileFeatures = tuple[float, ...]
_log = math.log


def rows(request: Request) -> list[list[float]]:
    found = v1.rows(request)
    by_category = profile_features(request)
    for row, candidate in zip(found, request.candidates, strict=True):
        row += by_category[candidate.category]
    return found


def profile_features(request: Request) -> dict[str, _ProfileFeatures]:
    """Return the five profile dimensions of each offered category."""
    profile, offered = request.profile_features, {candidate.category for candidate in request.candidates}
    if profile is None:
        return dict.fromkeys(offered, _NEUTRALS)
    angle, known = math.tau * request.context.hour / 24, profile.categories
    flat = _flat_features(profile, angle)
    if not known:
        return dict.fromkeys(offered, flat)
    usual, now = _usual(known.values()), (math.sin(angle), math.cos(angle))
    return {category: _category_features(known.get(category, _NEVER_SHOWN), usual, now, flat) for category in offered}


def _flat_features(profile: Profile, angle: float) -> _ProfileFeatures:
    """Return the dimensions from the user's overall figures, which are the same for all candidates."""
    hour = profile.preferred_hour
    return (
        _centred(profile.completion_rate),
        _centred(profile.dismiss_rate),
        _NEUTRAL if profile.mean_dwell_s is None else _dwell(profile.mean_dwell_s),
        _NEUTRAL if hour is None else math.cos(angle - math.tau * hour / 24),
        _NEUTRAL if profile.tip_volume is None else _volume(profile.tip_volume),
    )


class _Usual(NamedTuple):
    """This user's means over all categories, shrunk towards population defaults."""

    completion: float
    dismissal: float
    dwell_s: float


def _usual(entries: Iterable[CategoryProfile]) -> _Usual:
    """Return the means; each starts with five pseudo-observations of what is usual."""
    completed = dismissed = _SHRINKAGE * _USUAL_RATE
    dwelt_s = _SHRINKAGE * _NEUTRAL_DWELL_S
    shown_completed = shown_dismissed = shown_dwelt = _SHRINKAGE
    for entry in entries:
        shown = entry.shown
        if shown is None:
            continue
        if (value := entry.completed) is not None:
            completed += value
            shown_completed += shown
        if (value := entry.dismissed) is not None:
            dismissed += value
            shown_dismissed += shown
        if (value := entry.mean_dwell_s) is not None:
            dwelt_s += shown * (value if value < LONGEST_DWELL_S else LONGEST_DWELL_S)
            shown_dwelt += shown
    return _Usual(completed / shown_completed, dismissed / shown_dismissed, dwelt_s / shown_dwelt)


def _category_features(
    entry: CategoryProfile, usual: _Usual, now: tuple[float, float], flat: _ProfileFeatures
) -> _ProfileFeatures:
    """Return the dimensions of one category; `flat` fills in for what is unknown about it.

    Every category of every request passes here, so what is short is written out instead of called.
    """
    completion, dismissal, dwell, alignment, volume = flat
    shown, completed = entry.shown, entry.completed
    if shown is not None:
        count = shown + _SHRINKAGE
        volume = 2 * _log(1 + shown) / _LOG_VOLUME - 1 if shown < _LARGE_VOLUME else 1.0
        if completed is not None:
            completion = 2 * (completed + _SHRINKAGE * usual.completion) / count - 1
        if (dismissed := entry.dismissed) is not None:
            dismissal = 2 * (dismissed + _SHRINKAGE * usual.dismissal) / count - 1
        if (mean_s := entry.mean_dwell_s) is not None:
            dwell_sum_s = shown * (mean_s if mean_s < LONGEST_DWELL_S else LONGEST_DWELL_S)
            dwell = 2 * _log(1 + (dwell_sum_s + _SHRINKAGE * usual.dwell_s) / count) / _LOG_DWELL - 1
    if (hour_sin := entry.hour_sin) is not None and (hour_cos := entry.hour_cos) is not None and completed is not None:
        alignment = (hour_sin * now[0] + hour_cos * now[1]) / (completed + _SHRINKAGE_OF_HOURS)
    return (
        completion if -1.0 <= completion <= 1.0 else _clip(completion),
        dismissal if -1.0 <= dismissal <= 1.0 else _clip(dismissal),
        dwell if dwell <= 1.0 else 1.0,
        alignment if -1.0 <= alignment <= 1.0 else _clip(alignment),
        volume,
    )


def _centred(rate: float | None) -> float:
    return _NEUTRAL if rate is None else 2 * rate - 1


def _dwell(mean_s: float) -> float:
    return 2 * math.log(1 + mean_s) / _LOG_DWELL - 1 if mean_s < LONGEST_DWELL_S else 1.0


def _volume(shown: float) -> float:
    return 2 * math.log(1 + shown) / _LOG_VOLUME - 1 if shown < _LARGE_VOLUME else 1.0


def _clip(value: float) -> float:
    return -1.0 if value < -1.0 else min(value, 1.0)


V2 = Features("v2", NAMES, rows)
