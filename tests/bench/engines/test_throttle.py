"""A busy engine is asked less, and left alone as long as it wants."""

from collections.abc import Iterator

import pytest

from tipbench.bench.engines.http import Throttle
from tipbench.core.errors import EngineBusy, GenerationFailed


def test_a_busy_engine_is_asked_less_and_left_alone_as_long_as_it_wants() -> None:
    pauses: list[float] = []
    throttle = Throttle(8, sleep=pauses.append)
    answers: Iterator[EngineBusy | str] = iter([EngineBusy("busy", 3.0), EngineBusy("busy", None), "an answer"])

    def work() -> str:
        answer = next(answers)
        if isinstance(answer, EngineBusy):
            raise answer
        return answer

    assert throttle.run(work) == "an answer"
    assert pauses == [3.0, 1.0]
    assert throttle.limit == 2
    for _ in range(40):
        throttle.run(lambda: "fine")
    assert throttle.limit == 8, "it finds its way back"


def test_an_engine_that_stays_busy_is_a_failure_with_a_reason() -> None:
    def busy() -> str:
        raise EngineBusy("busy", None)

    with pytest.raises(GenerationFailed, match="busy 10 times"):
        Throttle(4, sleep=lambda _: None).run(busy)
