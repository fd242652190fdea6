"""`tipbench recommend prior`, as a user types it."""

import json
from pathlib import Path

from benchmarks.parts.logged_lives import drawn_users, write_log

from tests.integration.command import tipbench
from tests.recommender.gates import promoted
from tests.recommender.prior.priors import prior_content
from tipbench.core.paths import decisions_folder
from tipbench.core.settings import Settings
from tipbench.recommender.policies.catalog import POLICIES
from tipbench.recommender.store.moving import open_store
from tipbench.server.jobs.simulation_asked import built_in_world


def test_fitted_listed_and_shown(home: Path) -> None:
    write_log(decisions_folder(home), drawn_users(built_in_world(), 5, 4, 3), POLICIES["egreedy/v2"])
    assert "has rewards of 5 users, and a prior takes 100" in tipbench("recommend", "prior", "fit").err
    done = tipbench("recommend", "prior", "fit", "--min-users", "5")
    assert done.status == 0, done.err
    [digest] = open_store(Settings()).priors.digests()
    assert done.out.startswith(f"Prior {digest} is fitted to 20 rewards of 5 users for ")
    assert f"tipbench sim gate --candidate ucb/v3@{digest}" in done.out
    assert tipbench("recommend", "prior", "list").out.startswith("1 prior; none is live.")
    shown = tipbench("recommend", "prior", "show", digest)
    assert shown.out.startswith(f"Prior {digest} is fitted to 20 rewards of 5 users")
    assert "hour_alignment" in shown.out
    data = json.loads(tipbench("recommend", "prior", "show", digest, "--format", "json").out)
    assert (data["id"], data["users"]) == (digest, 5)


def test_which_is_live_and_which_can_not_be_read(home: Path) -> None:
    store = open_store(Settings())
    live, broken = store.priors.put(prior_content()), store.priors.put(prior_content(noise=-1.0))
    act = promoted("egreedy", "egreedy/v2").model_copy(update={"to": f"ucb/v3@{live}"})
    store.promotions.append(act, 0)
    listed = tipbench("recommend", "prior", "list").out
    assert listed.startswith(f"1 prior; prior {live} is live.")
    assert f"{broken}.json is not a prior that this version of tipbench can use" in " ".join(listed.split())
    data = json.loads(tipbench("recommend", "prior", "list", "--format", "json").out)
    assert (data["live"], [one["live"] for one in data["priors"]], len(data["problems"])) == (live, [True], 1)


def test_nothing_is_guessed(home: Path, tmp_path: Path) -> None:
    assert "there is no prior 0000000000000000" in tipbench("recommend", "prior", "show", "0" * 16).err
    assert "'../key' is not a record id" in tipbench("recommend", "prior", "show", "../key").err
    done = tipbench("recommend", "prior", "fit", "--log", str(tmp_path / "nowhere"))
    assert (done.status, "is not a folder" in done.err) == (2, True)
