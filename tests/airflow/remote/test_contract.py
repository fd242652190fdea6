"""A run's conf holds what was asked for and nothing that is a default by not being there."""

from tipbench.airflow.remote.records import conf_of, is_collect
from tipbench.bench.options import make_options


def test_a_conf_is_the_options_without_what_is_not_given() -> None:
    options = make_options({"models": "a", "judge": "lexical"})
    conf = conf_of(options, retry_failed=False, fresh=False)
    assert (conf["models"], conf["judge"], conf["n_tips"]) == ("a", "lexical", 5)
    assert not {"mlflow_url", "concurrency", "retry_failed", "fresh"} & conf.keys()
    assert make_options(conf) == options
    assert conf_of(options, retry_failed=True, fresh=True).items() >= {"retry_failed": True, "fresh": True}.items()


def test_each_host_has_a_collecting_task() -> None:
    assert [is_collect(name) for name in ("collect", "collect_gpu2_11434", "collected", "plan", "compare")] == [
        True,
        True,
        False,
        False,
        False,
    ]
