"""The recommender as the API tells it: rewards, gates, replays, promotions and shadows."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from fastapi import FastAPI

from tests.server.ui.asgi_client import Client
from tests.server.views.conftest import EXPERIMENT
from tests.server.views.made_recommender import a_gate, a_replay, a_signal, made_room, record, signal
from tests.server.views.served_rows import candidate_of, serve
from tipbench.core.errors import NotFound
from tipbench.core.settings import Settings
from tipbench.server.api.parts import Parts
from tipbench.server.api.recommend import router
from tipbench.server.views.boards import Boards, RunFilter
from tipbench.server.views.rewards_report import as_data
from tipbench.server.views.snapshots import SnapshotMemoryCache
from tipbench.server.views.store_provider import StoreProvider


def test_rewards_of_an_experiment(stores: StoreProvider, snapshots: SnapshotMemoryCache) -> None:
    boards = Boards(stores, snapshots)
    app = FastAPI()
    app.include_router(router(cast(Parts, SimpleNamespace(boards=boards))))
    client = Client(app)
    cell = boards.runs(EXPERIMENT, RunFilter(model="scripted/a"), 0, 1).cells[0]
    serve(stores.settings.home / "recommender", ("u1", candidate_of(cell), 1.0), ("u2", candidate_of(cell), None))
    answer = client.get(f"/api/recommend/rewards/{EXPERIMENT}")
    assert answer.json() == as_data(boards.rewards(EXPERIMENT))
    [row] = answer.json()["rows"]
    assert (row["model"], row["served"], row["rewarded"], row["mean_reward"]) == ("scripted/a", 2, 1, 1.0)
    with pytest.raises(NotFound):  # which the server's errors make a 404 of
        client.get("/api/recommend/rewards/no-such")


def test_gates_replays_promotions_and_shadows(home: Path) -> None:
    app = FastAPI()
    app.include_router(router(cast(Parts, SimpleNamespace(recommender=made_room()))))
    client = Client(app)
    kept = a_gate(home)
    assert [(one["id"], one["passed"]) for one in client.get("/api/recommend/gates").json()["gates"]] == [(kept, True)]
    assert client.get(f"/api/recommend/gates/{kept}").json()["verdict"]["personas"][0]["persona"] == "planner"
    with pytest.raises(NotFound):
        client.get("/api/recommend/gates/0123456789abcdef")

    replay = a_replay(home, "thin")
    (line,) = client.get("/api/recommend/replays").json()["replays"]
    assert (line["id"], line["candidate"], line["status"]) == (replay, "egreedy/v2", "thin")
    assert client.get(f"/api/recommend/replays/{replay}").json()["effective_sample"] == 455.2
    with pytest.raises(NotFound):
        client.get("/api/recommend/replays/0123456789abcdef")

    assert client.get("/api/recommend/promotions").json() == {"live": "egreedy", "acts": []}
    record(Settings(), "promote", "egreedy", "egreedy/v2", kept)
    told = client.get("/api/recommend/promotions").json()
    assert (told["live"], [(act["from"], act["gate"]) for act in told["acts"]]) == ("egreedy/v2", [("egreedy", kept)])

    assert client.get("/api/recommend/shadows").json() == {"days": []}
    signal(home, a_signal(0), a_signal(1))
    (day,) = client.get("/api/recommend/shadows").json()["days"]
    assert (day["signals"], day["agreement"], day["by_chance"]) == (2, 0.5, 0.25)
    assert (day["profile_dimensions"], day["neutral"]) == (5, 2.0)
