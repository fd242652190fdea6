"""Processes that score and reward, for tests that count what is left of it."""

import multiprocessing
import os
from collections.abc import Iterable
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

from tests.integration.recommender.databases import Where
from tests.recommender.making import a_recommender, a_request, a_reward, candidates
from tipbench.recommender.features.v1 import V1
from tipbench.recommender.policies.ridge import Ridge
from tipbench.recommender.recommender import Recommender
from tipbench.recommender.records import Request
from tipbench.recommender.store import interface as marks

USER = "u1"
POLICY = "egreedy"
_CANDIDATES = candidates(20)
_processes = multiprocessing.get_context("forkserver")  # which imports all this once, for all of them
_processes.set_forkserver_preload([__name__])


def request(number: int) -> Request:
    """With one candidate: whatever was learned before, its features are those that are learned from."""
    return a_request(f"e{number}", USER, hour=number % 24, of=[_CANDIDATES[number % 20]])


def reward(number: int) -> float:
    return (number % 9 - 4) / 4


def learn(recommender: Recommender, number: int) -> None:
    recommender.score(POLICY, request(number))
    recommender.reward(POLICY, a_reward(f"e{number}", reward(number), USER))


def expected(numbers: Iterable[int]) -> Ridge:
    """What one process gets."""
    state = Ridge(V1.dimensions, 1.0)
    for number in numbers:
        state.learn(V1.matrix(request(number))[0], reward(number))
    return state


def assert_learned_once(kept_state: Any, numbers: range) -> None:
    state, one = Ridge.from_data(kept_state, V1.dimensions, 1.0), expected(numbers)
    assert state.n == one.n
    np.testing.assert_allclose(state.xx, one.xx, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(state.xr, one.xr, rtol=1e-9, atol=1e-9)


def start_writer(where: Where, folder: Path, numbers: range, durable: bool = True) -> BaseProcess:
    process = _processes.Process(target=_write, args=(where, folder, numbers, durable))
    process.start()
    return process


def acknowledged(folder: Path) -> list[int]:
    """Of all writers of this folder; a number that is cut off was not acknowledged."""
    lines = (folder / "acknowledged").read_bytes().splitlines(keepends=True)
    return [int(line) for line in lines if line.endswith(b"\n")]


def _write(where: Where, folder: Path, numbers: range, durable: bool) -> None:
    marks.LOCK_TIMEOUT_S = 60.0  # on a busy machine one of eight that want the same lock may be unlucky for long
    recommender = a_recommender(folder, store=where.open(durable=durable))
    told = os.open(folder / "acknowledged", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    for number in numbers:
        learn(recommender, number)
        os.write(told, b"%d\n" % number)
    recommender.close()
