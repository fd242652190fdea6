"""What the service counts: what came of requests, once each, by labels that nobody outside can make more of."""

import json
from collections.abc import Callable

from tests.integration.serving import until
from tests.recommender.service.asking import request, reward
from tests.recommender.service.conftest import Service
from tests.web.exposition import Samples, samples
from tests.web.small_app import Caller
from tipbench.recommender.service.metrics import FAMILIES, CountingObserver
from tipbench.web.metrics import Metrics

SHADOW = "egreedy-v2-shadow"


def scraped(service: Service) -> Samples:
    return samples(service.get("/metrics").text)


def tip(category: str) -> dict[str, object]:
    return {"id": "t1", "category": category, "len_chars": 60}


def test_decisions_and_rewards_are_counted_by_what_came_of_them(service: Service) -> None:
    service.json_answer("/score/linucb", request("none-yet"))
    for event, value in (("e1", 0.5), ("e2", -0.25), ("e3", 1.0), ("e4", 0.0)):
        asked = request(event, candidates=[tip("rest" if event == "e4" else "inbox")])
        for _ in range(3):
            service.json_answer("/score", asked)
        assert service.post("/score", request(event)).status == 409
        for _ in range(2):
            service.json_answer("/reward", reward(event, value))
        assert service.post("/reward", reward(event, 0.125)).status == 409
    service.json_answer("/score", request("e5"))
    service.clock.now += 8 * 86_400
    assert service.json_answer("/reward", reward("e5"))["status"] == "late"
    assert service.json_answer("/reward", reward("e5"))["status"] == "late"
    found = scraped(service)

    def counted(name: str, **labels: str) -> float:
        return found.sum(f"tipbench_{name}", **labels)

    assert counted("decisions_total", policy="egreedy") == 5
    assert counted("decisions_total", policy="linucb") == 1
    of_egreedy = {status: counted("rewards_total", policy="egreedy", status=status) for status in ("applied", "late")}
    assert of_egreedy == {"applied": 4, "late": 1}
    assert counted("rewards_total", policy="egreedy", status="duplicate") == 5  # one of a late one, as /stats has it
    assert counted("rewards_total") == 10
    assert counted("rewarded_total", policy="egreedy", category="inbox") == 3
    assert counted("rewarded_total", policy="egreedy", category="rest") == 1
    assert counted("reward_points_total", policy="egreedy", category="inbox", sign="positive") == 1.5
    assert counted("reward_points_total", policy="egreedy", category="inbox", sign="negative") == 0.25
    assert counted("store_duration_seconds_count", store="files", operation="score") == 18
    assert counted("store_duration_seconds_count", store="files", operation="reward") == 14
    assert (
        counted("store_duration_seconds_count", store="files", operation="sync") == 16  # where anything changed
    )  # of those that change anything


def test_both_ways_to_an_endpoint_are_counted_as_one_route(service: Service) -> None:
    body = json.dumps(request("e1")).encode()
    for content_type in ("application/json", "application/json; charset=latin1"):  # the second goes FastAPI's way
        headers = {**service.headers, "content-type": content_type}
        assert Caller(service.app)("POST", "/score/egreedy/v2", headers, body).status == 200
    service.post("/score/egreedy/v2", b"{")
    service.get("/stats/egreedy/v2?user_id=secret-user")
    service.get("/stats/linucb/secret-user")
    found = scraped(service)
    requests = {key: value for key, value in found.items() if "http_requests" in key}
    assert requests == {
        'tipbench_http_requests_total{method="POST",route="/score/egreedy/v2",server="recommend",status="200"}': 2,
        'tipbench_http_requests_total{method="POST",route="/score/egreedy/v2",server="recommend",status="422"}': 1,
        'tipbench_http_requests_total{method="GET",route="/stats/egreedy/v2",server="recommend",status="200"}': 1,
        'tipbench_http_requests_total{method="GET",route="/stats/linucb/{user_id}",server="recommend",status="200"}': 1,
    }


def test_nobody_outside_makes_more_labels_or_finds_a_user_in_them(service: Service) -> None:
    hostile = ['a"} 1', "a\\", "\u202egnp.exe", "\u00e9" * 128, "{}", "le"]
    for number, category in enumerate(hostile):
        event, user = f"secret-event-{number}", f"secret-user-{number % 7}"
        service.json_answer("/score/egreedy", request(event, user, candidates=[tip(category)]))
        service.json_answer("/reward/egreedy", reward(event, 1.0, user))
    for path in ("/secret-path", "/score/secret-policy", "/stats/egreedy/secret-user-1"):
        service.get(path)
        service.post(path, b"{}")
    text = service.get("/metrics").text
    assert "secret" not in text
    rewarded = {key: value for key, value in samples(text).items() if key.startswith("tipbench_rewarded_total")}
    assert list(rewarded.values()) == [1] * len(hostile)
    assert 'tipbench_rewarded_total{category="a"} 1",policy="egreedy"}' in rewarded
    assert 'tipbench_rewarded_total{category="\\u202egnp.exe",policy="egreedy"}' in rewarded


def test_a_thousand_categories_are_a_hundred_and_the_rest() -> None:
    metrics = Metrics("recommend", "files", FAMILIES)
    observer = CountingObserver(metrics, ("egreedy", "linucb"), ())
    for number in range(1000):
        for policy in ("egreedy", "linucb"):
            observer.rewarded(policy, "applied", f"category-{number}", -0.5)
    found = samples(metrics.text())
    for policy in ("egreedy", "linucb"):
        rewarded = {key: value for key, value in found.items() if key.startswith("tipbench_rewarded") and policy in key}
        assert len(rewarded) == 101
        assert sum(rewarded.values()) == 1000
        assert rewarded[f'tipbench_rewarded_total{{category="other",policy="{policy}"}}'] == 900
        assert found.sum("tipbench_reward_points_total", policy=policy, category="other", sign="negative") == 450


def test_a_shadow_is_counted_whether_it_agrees_or_fails(made: Callable[..., Service]) -> None:
    service = made(SHADOW)
    assert {key: value for key, value in scraped(service).items() if "shadow" in key} == {
        f'tipbench_shadow_choices_total{{agrees="false",shadow="{SHADOW}"}}': 0,
        f'tipbench_shadow_choices_total{{agrees="true",shadow="{SHADOW}"}}': 0,
        f'tipbench_shadow_errors_total{{shadow="{SHADOW}"}}': 0,
    }
    service.json_answer("/score", request("e1", candidates=[tip("inbox")]))
    (service.states / "u2_egreedy-v2-shadow.json").write_text("not a state")
    service.json_answer("/score", request("e2", "u2"))

    def settled() -> bool:
        counts = service.json_answer("/shadows")["shadows"][0]["counts"]
        return bool(counts["offered"] == 2 == sum(counts.values()) - counts["offered"])

    until(settled)
    published = service.json_answer("/shadows")["shadows"][0]["counts"]["published"]  # the first, unless it was late
    found = scraped(service)
    assert found[f'tipbench_shadow_choices_total{{agrees="true",shadow="{SHADOW}"}}'] == published
    assert found[f'tipbench_shadow_errors_total{{shadow="{SHADOW}"}}'] == 2 - published >= 1
