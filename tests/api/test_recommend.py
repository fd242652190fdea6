"""What users did with an experiment's rows, as the API tells it."""

from types import SimpleNamespace
from typing import cast

import pytest
from fastapi import FastAPI

from tests.admin.conftest import EXPERIMENT
from tests.admin.served_rows import candidate_of, serve
from tests.ui.asgi_client import Client
from tipbench.admin.boards import Boards, RunFilter
from tipbench.admin.looks import Looks
from tipbench.admin.place import Place
from tipbench.admin.rewards_report import as_data
from tipbench.api.parts import Parts
from tipbench.api.recommend import router
from tipbench.errors import NotFound


def test_rewards_of_an_experiment(place: Place, looks: Looks) -> None:
    boards = Boards(place, looks)
    app = FastAPI()
    app.include_router(router(cast(Parts, SimpleNamespace(boards=boards))))
    client = Client(app)
    cell = boards.runs(EXPERIMENT, RunFilter(model="scripted/a"), 0, 1).cells[0]
    serve(place.settings.home / "recommender", ("u1", candidate_of(cell), 1.0), ("u2", candidate_of(cell), None))
    answer = client.get(f"/api/recommend/rewards/{EXPERIMENT}")
    assert answer.json() == as_data(boards.rewards(EXPERIMENT))
    [row] = answer.json()["rows"]
    assert (row["model"], row["served"], row["rewarded"], row["mean_reward"]) == ("scripted/a", 2, 1, 1.0)
    with pytest.raises(NotFound):  # which the server's errors make a 404 of
        client.get("/api/recommend/rewards/no-such")
