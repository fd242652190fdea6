"""Requests as an application sends them: candidates of eight categories, and a user with a profile by category."""

import random
from typing import Any

CATEGORIES = ("inbox", "focus", "meetings", "breaks", "planning", "writing", "learning", "health")


def tip_request(drawn: random.Random, user_id: str, event_id: str, candidates: int = 20) -> dict[str, Any]:
    return {
        "user_id": user_id,
        "event_id": event_id,
        "context": {"hour": round(drawn.uniform(6, 23), 2), "focus_category": drawn.choice(CATEGORIES)},
        "candidates": [_candidate(drawn, number) for number in range(candidates)],
        "profile_features": {"categories": {category: _did(drawn) for category in CATEGORIES}},
    }


def _candidate(drawn: random.Random, number: int) -> dict[str, Any]:
    return {
        "id": f"tip-{number}",
        "category": drawn.choice(CATEGORIES),
        "len_chars": drawn.randrange(60, 400),
        "effort_min": float(drawn.randrange(1, 45)),
        "hours_since_shown": drawn.choice((None, round(drawn.uniform(1, 200), 1))),
    }


def _did(drawn: random.Random) -> dict[str, Any]:
    shown = drawn.randrange(40)
    completed = drawn.randrange(shown + 1)
    return {
        "shown": float(shown),
        "completed": float(completed),
        "dismissed": float(drawn.randrange(shown - completed + 1)),
        "mean_dwell_s": round(drawn.uniform(2, 200), 1),
        "hour_sin": round(completed * drawn.uniform(-0.7, 0.7), 3),
        "hour_cos": round(completed * drawn.uniform(-0.7, 0.7), 3),
    }
