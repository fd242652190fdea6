"""The exception tree. Each message says what was wrong, with which value, and what to do next.

TipbenchError
├── InvalidInput            a flag, a file or a name that can't be used
│   ├── NotFound            a name of something that is not there
│   ├── Conflict            something that was told otherwise before
│   ├── SuiteError          a suite's files, with file and line
│   └── JudgeFileError      a judge file that does not fit its batch
├── EngineError             an engine, or a model on it
│   ├── EngineUnreachable   nothing answers at the engine's address
│   ├── ModelMissing        the engine does not have the model
│   ├── EngineBusy          the engine asks to come back later
│   └── GenerationFailed    the engine had the model and gave no answer
├── TrackingError           the MLflow server or database
│   ├── TrackingUnreachable nothing answers at its address
│   ├── TrackingRefused     it answers, and refuses us (host check, credentials)
│   ├── NothingStored       its database file does not exist yet
│   └── StoredDataDamaged   what was read back is not what was written
├── JudgeFailed             a judge that runs by itself gave no usable file
│   ├── ScoresRefused       what it gave can't be applied as it is, and is kept
│   └── JudgeLater          it took the batch; its scores come back some other time
├── RunnerError             the place where runs happen, when it is another one than this machine
│   ├── RunnerUnreachable   nothing answers at its address
│   └── RunnerRefused       it answers, and refuses us
├── StateError              what the recommender keeps about its users
│   ├── StateRefused        a state that was made of other features, or that was moved elsewhere
│   ├── StateDamaged        a state that nobody of ours wrote
│   └── StoreUnreachable    its database does not answer
├── SimulationFailed        simulated users, whose process, worker or service ended without a result
├── DatabaseBusy            a SQLite file that another program has locked
├── LockTaken               another process is at it, and the user would not wait
└── MissingExtra            an optional part of tipbench is not installed
"""

from collections.abc import Sequence


class TipbenchError(Exception):
    """Anything that ends a command with a message instead of a traceback."""


class InvalidInput(TipbenchError):
    """A flag, a file or a name that can't be used; nothing was changed."""


class NotFound(InvalidInput):
    """A name of something that is not there."""


class Conflict(InvalidInput):
    """Something that was told otherwise before; nothing was changed."""


class Problems(InvalidInput):
    """Several problems found in one go, so that a user mends them in one go."""

    def __init__(self, headline: str, problems: Sequence[str]) -> None:
        self.headline = headline
        self.problems = tuple(problems)
        super().__init__("\n".join([headline, *(f"  - {problem}" for problem in problems)]))


class SuiteError(Problems):
    """A suite whose files don't fit together; each problem names its file and line."""


class JudgeFileError(Problems):
    """A judge file that does not fit the batch it answers; nothing was written."""


class NothingPending(InvalidInput):
    """Nothing waits for this judge."""

    def __init__(self, message: str, judge: str) -> None:
        self.judge = judge
        super().__init__(message)


class EngineError(TipbenchError):
    """An engine, or a model on it."""


class EngineUnreachable(EngineError):
    """Nothing answers at the engine's address."""


class ModelMissing(EngineError):
    """The engine does not have the model."""


class EngineBusy(EngineError):
    """The engine asks to come back later (429, 503)."""

    def __init__(self, message: str, retry_after_s: float | None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class GenerationFailed(EngineError):
    """The engine had the model and gave no answer."""


class TrackingError(TipbenchError):
    """The MLflow server or database."""


class TrackingUnreachable(TrackingError):
    """Nothing answers at the tracking address."""


class TrackingRefused(TrackingError):
    """The tracking server answers and refuses us: host check or credentials."""


class NothingStored(TrackingError):
    """A database file that does not exist yet, asked for results."""


class StoredDataDamaged(TrackingError):
    """What was read back is not what was written."""


class JudgeFailed(TipbenchError):
    """A judge that runs by itself gave no usable file; nothing was written."""


class ScoresRefused(JudgeFailed):
    """What a judge that runs by itself gave can't be applied as it is; it is kept."""


class JudgeLater(JudgeFailed):
    """A judge took the batch and answers later; its scores have to be applied when they come."""

    def __init__(self, message: str, batch: str, items: int) -> None:
        super().__init__(message)
        self.batch = batch
        self.items = items


class RunnerError(TipbenchError):
    """The place where runs happen, when it is another one than this machine."""


class RunnerUnreachable(RunnerError):
    """Nothing answers where runs happen."""


class RunnerRefused(RunnerError):
    """The place where runs happen answers and refuses us."""


class StateError(TipbenchError):
    """What the recommender keeps about its users."""


class StateRefused(StateError):
    """A state that was made of other features, or that was moved elsewhere."""


class StateDamaged(StateError):
    """A state that nobody of ours wrote."""


class StoreUnreachable(StateError):
    """The database of states does not answer."""


class SimulationFailed(TipbenchError):
    """Simulated users: their process, a worker or the service ended without a result."""


class DatabaseBusy(TipbenchError):
    """A SQLite file that another program has locked for seconds; nothing was changed."""


class LockTaken(TipbenchError):
    """Another process is at it, and the user said not to wait."""


class MissingExtra(TipbenchError):
    """An optional part of tipbench is not installed."""
