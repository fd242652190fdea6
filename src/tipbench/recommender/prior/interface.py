"""What a population prior is, as a policy uses it and as it is stored, and the interface of where priors are stored."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tipbench.core.errors import NotFound, StateRefused, TipbenchError
from tipbench.recommender.features.interface import Floats
from tipbench.recommender.features.v3 import DENSE, NAMES, V3

_SIDE = DENSE * (DENSE + 1) // 2
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True, eq=False)
class Prior:
    """What is assumed about a user before the first reward. Two priors with one digest are the same."""

    digest: str | None  # None: no population prior, but a ridge of λ = 1
    mean: Floats  # of the dense coefficients
    precision: Floats  # of the dense coefficients, times the noise
    intercept_precision: float  # of a category's intercept, whose mean is 0, times the noise
    noise: float  # variance of a reward, given the coefficients
    tips: Mapping[str, float]  # what each tip earned over all users, as a difference from the mean, shrunk
    last_ms: int = -1  # time of the last decision that it was fitted to

    @cached_property
    def pull(self) -> Floats:
        """What is added to a user's sums: [[P, Pμ], [0, 1]], with P the precision and μ the mean."""
        pull = np.eye(DENSE + 1)
        pull[:DENSE, :DENSE], pull[:DENSE, DENSE] = self.precision, self.precision @ self.mean
        return pull

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prior) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


FLAT = Prior(None, np.zeros(DENSE), np.eye(DENSE), 1.0, 1.0, {})


class PriorRecord(BaseModel):
    """A prior as it is stored; immutable, and named by its content."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", populate_by_name=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    id: str = ""
    feature_version: Literal["v3"] = "v3"
    users: Annotated[int, Field(ge=0)]
    rewards: Annotated[int, Field(ge=0)]
    first_ms: int  # times of the first and the last decision that it was fitted to
    last_ms: int
    mean_reward: _Number
    mean: dict[str, _Number]  # by feature
    precision: Annotated[list[_Number], Field(min_length=_SIDE, max_length=_SIDE)]  # the upper triangle, row by row
    intercept_precision: _Positive
    noise: _Positive
    tips: dict[str, Annotated[float, Field(ge=-2, le=2)]]

    @property
    def prior(self) -> Prior:
        """The prior for policies; raises ValueError if the numbers can't be one."""
        if tuple(self.mean) != NAMES[:DENSE]:
            raise ValueError("its features are not those of version 3")
        precision = np.zeros((DENSE, DENSE))
        precision[np.triu_indices(DENSE)] = self.precision
        precision += np.triu(precision, 1).T
        if not float(np.linalg.eigvalsh(precision)[0]) > 0:
            raise ValueError("its precision is not positive definite")
        mean = np.array(list(self.mean.values()))
        return Prior(self.id, mean, precision, self.intercept_precision, self.noise, self.tips, self.last_ms)

    @property
    def content(self) -> dict[str, Any]:
        """Everything that the digest is of."""
        return self.model_dump(by_alias=True, exclude={"id"})

    @property
    def deviations(self) -> dict[str, float]:
        """The standard deviation of each dense coefficient among users."""
        variances = self.noise * np.diag(np.linalg.inv(self.prior.precision))
        return dict(zip(self.mean, np.sqrt(variances).tolist(), strict=True))

    @property
    def intercept_deviation(self) -> float:
        return math.sqrt(self.noise / self.intercept_precision)


ReadPrior = Callable[[str], PriorRecord]  # by digest


class Priors(Protocol):
    """Priors are stored where the states are, so that everybody who serves from a store has the same."""

    def put(self, content: Mapping[str, Any]) -> str:
        """Store a prior; return its digest. Storing the same one again changes nothing."""
        ...

    def read(self, digest: str) -> PriorRecord:
        """Return a prior; raise NotFound, StateDamaged if it was edited, or StateRefused if it is of another kind."""
        ...

    def digests(self) -> list[str]: ...


def load_priors(priors: Priors) -> tuple[list[PriorRecord], list[str]]:
    """Return all priors, those of the newest decisions first, and what is wrong with those that can't be read."""
    records, problems = [], []
    for digest in priors.digests():
        try:
            records.append(priors.read(digest))
        except TipbenchError as error:
            problems.append(str(error))
    return sorted(records, key=lambda record: (-record.last_ms, record.id)), problems


def parse_prior(data: Mapping[str, Any], address: str) -> PriorRecord:
    """Check what a record holds; raise StateRefused if this version of tipbench can't use it."""
    try:
        record = PriorRecord.model_validate(data)
        _ = record.prior
    except (ValidationError, ValueError, np.linalg.LinAlgError) as error:
        raise StateRefused(
            f"{address} is not a prior that this version of tipbench can use with features {V3.version}; fit another: "
            "tipbench recommend prior fit"
        ) from error
    return record


def no_prior_error(digest: str, address: str) -> NotFound:
    return NotFound(f"there is no prior {digest} in {address}; 'tipbench recommend prior list' shows those that are")
