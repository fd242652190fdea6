"""Requests that can be used."""

from typing import Any

PATHS = ("", "/egreedy", "/egreedy/v2", "/linucb")


def request(event_id: str, user_id: str = "u1", **more: Any) -> dict[str, Any]:
    candidates = [
        {"id": "t1", "category": "inbox", "len_chars": 120, "effort_min": 10, "hours_since_shown": 20},
        {"id": "t2", "category": "focus", "len_chars": 60},
    ]
    asked = {"user_id": user_id, "event_id": event_id, "context": {"hour": 9.5, "focus_category": "inbox"}}
    return {**asked, "candidates": candidates, **more}


def reward(event_id: str, value: float = 0.5, user_id: str = "u1", **more: Any) -> dict[str, Any]:
    return {"user_id": user_id, "event_id": event_id, "reward": value, **more}
