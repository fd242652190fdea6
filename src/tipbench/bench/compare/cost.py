"""What a row costs beside what it is worth: tokens, seconds, the size of its model; and the Pareto front of the two."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from tipbench.bench.records import StoredCell


@dataclass(frozen=True)
class Cost:
    """Means over a row's answers; None where an engine does not tell."""

    prompt_tokens: float | None
    output_tokens: float | None
    load_s: float | None
    generate_s: float | None
    wall_s: float | None  # from request to answer
    tokens_per_s: float | None  # of all output over all of its generating
    model_bytes: int | None
    parameters: int | None

    @property
    def seconds(self) -> float | None:
        """What an app with the model in memory waits for; where that is not known, from request to answer."""
        return self.wall_s if self.generate_s is None else self.generate_s


def cost_of(cells: Sequence[StoredCell]) -> Cost:
    answered = [cell for cell in cells if cell.failure is None]

    def mean(name: str) -> float | None:
        return mean_known(cell.metrics.get(name) for cell in answered)

    timed = [
        (cell.metrics["gen/output_tokens"], cell.metrics["gen/generate_s"])
        for cell in answered
        if "gen/output_tokens" in cell.metrics and "gen/generate_s" in cell.metrics
    ]
    seconds = sum(time for _, time in timed)
    return Cost(
        prompt_tokens=mean("gen/prompt_tokens"),
        output_tokens=mean("gen/output_tokens"),
        load_s=mean("gen/load_s"),
        generate_s=mean("gen/generate_s"),
        wall_s=mean("gen/wall_s"),
        tokens_per_s=sum(tokens for tokens, _ in timed) / seconds if seconds > 0 else None,
        model_bytes=max((cell.model_bytes for cell in cells if cell.model_bytes), default=None),
        parameters=max((cell.parameters for cell in cells if cell.parameters), default=None),
    )


def mean_known(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def pareto_front(points: Sequence[tuple[float | None, float | None]]) -> list[bool]:
    """Of (quality, seconds) those that no other point beats: as good and as quick, and better in one of the two.

    By means alone. A point of which either is unknown is not on the front.
    """
    known = [(quality, seconds) for quality, seconds in points if quality is not None and seconds is not None]
    return [
        quality is not None
        and seconds is not None
        and not any(q >= quality and s <= seconds and (q > quality or s < seconds) for q, s in known)
        for quality, seconds in points
    ]
