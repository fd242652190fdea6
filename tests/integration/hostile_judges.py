"""Judges of a hostile model's texts, over the API: what they write about them is no better."""

import json
from collections.abc import Callable
from itertools import cycle
from typing import Any

import httpx

from tests.integration.filling import filled
from tests.integration.hostile_answers import ESCAPES, IMAGE, LONG, NOTES, SCRIPT, TEXTS

File = dict[str, Any]

# What both judges agree on, so that these are shown as the best or the worst, whichever texts a batch has drawn.
_EXTREMES = {SCRIPT: "max", IMAGE: "min", LONG: "min", ESCAPES: "min"}


def next_batch(client: httpx.Client, **wanted: str) -> File:
    """The judge's file."""
    batch = client.post("/api/judging/next", json=wanted).raise_for_status().json()["batch"]["batch"]
    file: File = client.get(f"/api/judging/batches/{batch}").raise_for_status().json()
    return file


def take_notes(client: httpx.Client, file: File) -> None:
    for item, note in zip(file["items"], NOTES, strict=False):
        path = f"/api/judging/batches/{file['batch']}/items/{item['slot']}"
        client.patch(path, json={"note": note}).raise_for_status()


def scored(file: File) -> File:
    """By a faithful judge, to whom some texts are the best and some the worst: examples of the leaderboard."""
    done = filled(file)
    notes = dict(zip(TEXTS, cycle(NOTES), strict=False))
    for item in done["items"]:
        item["note"] = notes.get(item["candidate"], "")
        if extreme := _EXTREMES.get(item["candidate"]):
            item["scores"] = {name: scale[extreme] for name, scale in done["scales"].items()}
    return done


def scored_lowest(file: File) -> File:
    done = filled(file)
    for item in done["items"]:
        extreme = _EXTREMES.get(item["candidate"], "min")
        item["scores"] = {name: scale[extreme] for name, scale in done["scales"].items()}
    return done


def hand_in(client: httpx.Client, file: File, by: Callable[[File], File]) -> File:
    path = f"/api/judging/batches/{file['batch']}/scores"
    answer = client.post(path, content=json.dumps(by(file)), headers={"Content-Type": "application/json"})
    applied: File = answer.raise_for_status().json()
    return applied
