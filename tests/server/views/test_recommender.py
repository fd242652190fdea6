"""The room is put together in the home of the settings."""

import time
import uuid
from pathlib import Path

from tests.server.views.made_recommender import a_gate, a_signal, signal
from tipbench.core.settings import Settings
from tipbench.server.views.recommender import open_recommender_views


def test_everything_is_looked_for_in_one_home(home: Path) -> None:
    kept = a_gate(home)
    signal(home, a_signal())
    room = open_recommender_views(Settings(), time.time, lambda: uuid.uuid4().hex[:16])
    try:
        assert [line.id for line in room.gates.lines()] == [kept]
        assert [day.signals for day in room.shadows.read()] == [1]
        assert room.promotions.live() == "egreedy"
        assert room.simulations.newest(5) == []
    finally:
        room.simulations.close()
