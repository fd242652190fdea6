"""A judge that is a model on any engine: one request per item and criterion, so that items can't affect each other."""

import copy
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from tipbench.bench.engines.http import Throttle
from tipbench.bench.engines.interface import CONTEXT_TOKENS, Engine, bare_name
from tipbench.bench.judge.judges.interface import JudgeName
from tipbench.bench.judge.judges.prompt import Delimiters, PromptBuilder, Question, questions
from tipbench.bench.records import GenerationRequest
from tipbench.bench.suites.rubric import Rubric
from tipbench.core.errors import EngineError, GenerationFailed, JudgeFailed
from tipbench.core.identity import derived_seed
from tipbench.core.untrusted import printable, shown

_ANSWER_TOKENS = (64, 512, 512)  # per attempt; retries allow more, for models that think before they answer
_TEMPLATE_TOKENS = 128  # added by chat templates
_REPORT_EVERY = 10  # items


class _NoAnswer(Exception):
    """The model did not answer a question; the message says why."""


class ModelJudge:
    """Scores item by item. Meanwhile its model is the only one in its engine's memory; afterwards it is unloaded."""

    def __init__(
        self,
        rubric: Rubric,
        model: str,
        engine: Engine,
        identity: JudgeName,
        seed: int = 0,
        say: Callable[[str], None] = lambda _line: None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.identity = identity
        self._rubric = rubric
        self._model = model
        self._engine = engine
        self._seed = seed
        self._say = say
        self._throttle = Throttle(1, sleep)
        self._questions = questions(rubric)

    def score(self, file: dict[str, Any]) -> dict[str, Any]:
        filled = copy.deepcopy(file)
        prompts = PromptBuilder(self._rubric, self._token_budget())
        self._unload_others()
        try:
            self._fill(filled["items"], prompts)
        except BaseException:
            with suppress(EngineError):  # the user should see the first error
                self._engine.unload(self._model)
            raise
        try:
            self._engine.unload(self._model)
        except EngineError as error:  # no reason to discard the scores
            self._say(str(error))
        return filled

    def _token_budget(self) -> int:
        reported = self._engine.describe(self._model).context_length
        return min(CONTEXT_TOKENS, reported or CONTEXT_TOKENS) - max(_ANSWER_TOKENS) - _TEMPLATE_TOKENS

    def _unload_others(self) -> None:
        own = bare_name(self._model, self._engine.name)
        for loaded in self._engine.resident():
            if bare_name(loaded.name, self._engine.name) != own:
                self._engine.unload(loaded.name)

    def _fill(self, items: list[dict[str, Any]], prompts: PromptBuilder) -> None:
        missing = 0
        for number, item in enumerate(items, 1):
            try:
                self._fill_item(item, prompts)
            except _NoAnswer as reason:
                missing += 1
                item["note"] = printable(str(reason), 300)
            if number % _REPORT_EVERY == 0:
                without = f", {missing} of them without scores" if missing else ""
                self._say(f"{self._model} has judged {number} of {len(items)} items{without}.")
        if items and missing == len(items):
            raise JudgeFailed(
                f"{printable(self._model, 100)} returned no scores for any of {len(items)} items "
                f"({items[-1]['note']}); "
                "use another model as judge"
            )

    def _fill_item(self, item: dict[str, Any], prompts: PromptBuilder) -> None:
        """Fill in all answers or none: an item with only some scores can't be applied."""
        answers, note = {}, ""
        for question in self._questions:
            answers[question], is_whole = self._ask(question, item, prompts)
            if not is_whole:
                note = "only the beginning was judged: the whole text does not fit into the model's context"
        for question, answer in answers.items():
            item["flags" if question.is_flag else "scores"][question.name] = answer
        item["note"] = note

    def _ask(self, question: Question, item: dict[str, Any], prompts: PromptBuilder) -> tuple[int | bool, bool]:
        """Return the answer, and whether the model saw the whole candidate; raise _NoAnswer if there is none."""
        reason, share = "", 1.0
        for attempt, max_tokens in enumerate(_ANSWER_TOKENS):
            delimiters = Delimiters.derive(self._seed, item["slot"], question.name, attempt)
            prompt = prompts.build(question, item["scenario"], item["candidate"], delimiters, share)
            request = GenerationRequest(
                model=self._model,
                messages=prompt.messages,
                temperature=0.0,
                seed=derived_seed(self._seed, item["slot"], question.name, attempt),
                max_tokens=max_tokens,
                json_schema=question.schema,
            )
            try:
                text = self._throttle.run(partial(self._engine.generate, request)).text
            except GenerationFailed as error:
                reason, share = str(error), share / 2  # the prompt may have been too long after all
                continue
            answer = question.read(text)
            if answer is not None:
                return answer, prompt.is_whole
            reason = f"its answer was {shown(text)}"
        raise _NoAnswer(f"no {question.key} for {question.name} after {len(_ANSWER_TOKENS)} tries: {reason}")
