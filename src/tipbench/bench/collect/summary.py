"""What a collection did."""

from dataclasses import dataclass, field

from tipbench.bench.records import Answer, Failure, Outcome
from tipbench.core.text import counted

_FAILURES_SHOWN = 5


@dataclass
class Collected:
    """What a collection did."""

    planned: int
    stored_before: int
    failed_before: int
    undelivered: int = 0  # in the journal, because MLflow was away
    outages: int = 0
    superseded: int = 0  # generated on another host at the same time
    answered: int = 0
    empty: int = 0
    candidates: int = 0
    failed_now: int = 0
    seconds: float = 0.0
    first_failures: list[Failure] = field(default_factory=list)

    @property
    def failed(self) -> int:
        return self.failed_now + self.failed_before

    @property
    def is_complete(self) -> bool:
        return not self.failed and not self.undelivered

    @property
    def in_short(self) -> str:
        parts = [f"{counted(self.answered, 'cell')} answered"]
        if self.stored_before:
            parts.append(f"{self.stored_before} stored before")
        if self.failed:
            parts.append(f"{self.failed} failed")
        if self.undelivered:
            parts.append(f"{self.undelivered} not in MLflow yet, because it does not answer")
        return ", ".join(parts)

    def count(self, outcome: Outcome) -> None:
        if isinstance(outcome, Answer):
            self.answered += 1
            self.empty += not outcome.candidates
            self.candidates += len(outcome.candidates)
        else:
            self.failed_now += 1
            if len(self.first_failures) < _FAILURES_SHOWN:
                self.first_failures.append(outcome)
