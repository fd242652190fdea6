"""The exception tree. Each message says what was wrong, with which value, and what to do next.

TipbenchError
├── InvalidInput            a flag, a file or a name that can't be used
│   ├── NotFound            a name that refers to nothing
│   ├── Conflict            contradicts something recorded earlier
│   ├── SuiteError          problems in a suite's files, with file and line
│   └── JudgeFileError      a judge file that does not match its batch
├── EngineError             a problem with an engine, or with a model on it
│   ├── EngineUnreachable   nothing answers at the engine's address
│   ├── ModelMissing        the engine does not have the model
│   ├── EngineBusy          the engine asks to come back later
│   └── GenerationFailed    the engine has the model but gave no answer
├── TrackingError           a problem with the MLflow server or database
│   ├── TrackingUnreachable nothing answers at its address
│   ├── TrackingRefused     it answers but refuses us (host check, credentials)
│   ├── NothingStored       its database file does not exist yet
│   └── StoredDataDamaged   the data read back is not what was written
├── JudgeFailed             an automatic judge returned no usable file
│   ├── ScoresRefused       its scores can't be applied as they are; they are saved
│   └── JudgeLater          it accepted the batch and will return the scores later
├── RunnerError             a problem with a remote runner
│   ├── RunnerUnreachable   nothing answers at its address
│   └── RunnerRefused       it answers but refuses us
├── StateError              a problem with the recommender's user states
│   ├── StateRefused        a state built from other features, or moved elsewhere
│   ├── StateDamaged        a state that tipbench did not write
│   └── StoreUnreachable    the state database does not answer
├── SimulationFailed        a simulation's process, worker or service ended without a result
├── DatabaseBusy            a SQLite file is locked by another program
├── LockTaken               another process holds the lock, and the user chose not to wait
└── MissingExtra            an optional part of tipbench is not installed
"""

from collections.abc import Sequence


class TipbenchError(Exception):
    """Base class of errors that end a command with a message instead of a traceback."""


class InvalidInput(TipbenchError):
    """A flag, a file or a name that can't be used; nothing was changed."""


class NotFound(InvalidInput):
    """A name that refers to nothing."""


class Conflict(InvalidInput):
    """The input contradicts something recorded earlier; nothing was changed."""


class Problems(InvalidInput):
    """Several problems reported together, so that the user can fix them together."""

    def __init__(self, headline: str, problems: Sequence[str]) -> None:
        self.headline = headline
        self.problems = tuple(problems)
        super().__init__("\n".join([headline, *(f"  - {problem}" for problem in problems)]))


class SuiteError(Problems):
    """A suite's files are invalid or inconsistent; each problem names its file and line."""


class JudgeFileError(Problems):
    """A judge file does not match the batch that it answers; nothing was written."""


class NothingPending(InvalidInput):
    """There is nothing for this judge to score."""

    def __init__(self, message: str, judge: str) -> None:
        self.judge = judge
        super().__init__(message)


class EngineError(TipbenchError):
    """A problem with an engine, or with a model on it."""


class EngineUnreachable(EngineError):
    """Nothing answers at the engine's address."""


class ModelMissing(EngineError):
    """The engine does not have the model."""


class EngineBusy(EngineError):
    """The engine asks us to retry later (429, 503)."""

    def __init__(self, message: str, retry_after_s: float | None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class GenerationFailed(EngineError):
    """The engine has the model but gave no answer."""


class TrackingError(TipbenchError):
    """A problem with the MLflow server or database."""


class TrackingUnreachable(TrackingError):
    """Nothing answers at the tracking address."""


class TrackingRefused(TrackingError):
    """The tracking server answers but refuses us: host check or credentials."""


class NothingStored(TrackingError):
    """Results were requested from a database file that does not exist yet."""


class StoredDataDamaged(TrackingError):
    """The data read back is not what was written."""


class JudgeFailed(TipbenchError):
    """An automatic judge returned no usable file; nothing was written."""


class ScoresRefused(JudgeFailed):
    """An automatic judge's scores can't be applied as they are; they are saved."""


class JudgeLater(JudgeFailed):
    """A judge accepted the batch and will answer later; its scores must be applied when they arrive."""

    def __init__(self, message: str, batch: str, items: int) -> None:
        super().__init__(message)
        self.batch = batch
        self.items = items


class RunnerError(TipbenchError):
    """A problem with a remote runner, that is, one not on this machine."""


class RunnerUnreachable(RunnerError):
    """Nothing answers at the remote runner's address."""


class RunnerRefused(RunnerError):
    """The remote runner answers but refuses us."""


class StateError(TipbenchError):
    """A problem with the recommender's user states."""


class StateRefused(StateError):
    """A user state was built from other features, or was moved elsewhere."""


class StateDamaged(StateError):
    """A user state that tipbench did not write."""


class StoreUnreachable(StateError):
    """The state database does not answer."""


class SimulationFailed(TipbenchError):
    """A simulation's process, one of its workers or its service ended without a result."""


class DatabaseBusy(TipbenchError):
    """Another program kept a SQLite file locked for seconds; nothing was changed."""


class LockTaken(TipbenchError):
    """Another process holds the lock, and the user chose not to wait."""


class MissingExtra(TipbenchError):
    """An optional part of tipbench is not installed."""


def is_about_input(error: BaseException) -> bool:
    """Return whether the message is about what the caller sent, and so names no address, run or server file.

    A judge may read such a message; any other one might reveal what is being judged.
    """
    return isinstance(error, InvalidInput) and not isinstance(error, SuiteError)
