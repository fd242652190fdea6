"""A template that takes too long, or too much, ends in a problem; nobody waits for it."""

import datetime
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.command import tipbench
from tipbench.bench.suites import rendering
from tipbench.bench.suites.load import load_suite
from tipbench.bench.suites.rendering import GuardedTemplate, TemplateTooCostly
from tipbench.bench.suites.templates import TemplateProblem
from tipbench.core.errors import SuiteError
from tipbench.core.limited_process import LimitedProcess

LOOPS = "{% for a in range(9999) %}" * 3 + "{% endfor %}" * 3
SECONDS = 0.5
HOSTILE = {
    "three nested ranges": LOOPS,
    "a power at compile time": "{{ 10 ** (10 ** 9) }}",
    "a sum of sums": "{% for a in range(99999) %}{{ range(99999)|sum }}{% endfor %}",
    "doubling": "{% set n = namespace(x='xx') %}{% for a in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "a long text of few letters": "{{ 'x' * 10 ** 10 }}",
    "a wide number": "{{ '%0999999999d' % 1 }}",
    "a wide field": "{{ '{:>9999999999}'.format(1) }}",
    "a list of lists": "{{ ([0] * 9999999) * 9999 }}",
    "an indent": "{{ ('x\n' * 999999)|indent(999999) }}",
    "too long a text": "{{ 'x' * 1000001 }}",
}


def rendered(template: GuardedTemplate, **values: object) -> str:
    (text,) = template.render_each([values])
    if isinstance(text, TemplateProblem):
        raise text
    return text


@pytest.fixture(autouse=True)
def _less_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    process = LimitedProcess("tipbench.bench.suites.rendering", SECONDS)
    monkeypatch.setattr(rendering, "_process", process)
    yield
    process.close()


def test_text_values_and_problems_come_back() -> None:
    values = {"x": "naïve \n{{ y }}", "when": datetime.date(2026, 1, 2), "all": [1, {"a": None}]}
    assert rendered(GuardedTemplate("{{ x }}|{{ when.year }}|{{ all[1].a }}"), **values) == "naïve \n{{ y }}|2026|None"
    with pytest.raises(TemplateProblem, match="unexpected"):
        GuardedTemplate("{{ x }")
    with pytest.raises(TemplateProblem, match="'z' is undefined") as caught:
        rendered(GuardedTemplate("one\n\n{{ z }}"))
    assert caught.value.line == 3


@pytest.mark.parametrize("name", HOSTILE)
def test_a_costly_template_is_given_up(name: str) -> None:
    started = time.monotonic()
    with pytest.raises(TemplateProblem) as caught:
        rendered(GuardedTemplate(HOSTILE[name]))
    assert time.monotonic() - started < SECONDS + 4
    assert str(caught.value).startswith("template error: ")
    assert rendered(GuardedTemplate("{{ x }}"), x="the next one is rendered") == "the next one is rendered"


def test_one_costly_text_among_many_is_the_only_one_given_up() -> None:
    template = GuardedTemplate("{% for a in range(n) %}" * 3 + "{% endfor %}" * 3 + "{{ n }}")
    texts = list(template.render_each({"n": 9999 if number == 40 else number % 3} for number in range(70)))
    assert isinstance(texts[40], TemplateTooCostly)
    assert [text for text in texts if isinstance(text, str)] == [str(n % 3) for n in range(70) if n != 40]


def test_many_threads_get_their_own_texts() -> None:
    found: dict[int, str] = {}

    def ask(number: int) -> None:
        found[number] = rendered(GuardedTemplate("{{ n }}"), n=number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: str(number) for number in range(8)}


def test_a_suite_that_loops_is_told_once_and_soon(tmp_path: Path) -> None:
    assert tipbench("suite", "new", "loops", cwd=tmp_path).status == 0
    prompts = sorted((tmp_path / "loops" / "prompts").glob("*.md"))
    for path in prompts:
        path.write_text(path.read_text() + LOOPS)
    started = time.monotonic()
    with pytest.raises(SuiteError, match="needs more than 2 s or 512 MB") as caught:
        load_suite(str(tmp_path / "loops"))
    assert time.monotonic() - started < SECONDS + 4
    assert len(caught.value.problems) == 1


def test_an_interrupted_request_leaves_no_answer_to_the_next() -> None:
    template = GuardedTemplate("{% for a in range(99999) %}{% endfor %}{{ x }}")
    rendered(template, x="before")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    try:
        with pytest.raises(KeyboardInterrupt):
            rendered(template, x="interrupted")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert list(template.render_each({"x": number} for number in range(3))) == ["0", "1", "2"]


def test_what_python_itself_can_not_compile_is_called_that() -> None:
    with pytest.raises(TemplateProblem, match="too many statically nested blocks"):
        GuardedTemplate("{% for a in x %}" * 25 + "{% endfor %}" * 25)
