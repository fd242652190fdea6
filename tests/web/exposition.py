"""Reads metrics with Prometheus's own parser."""

from prometheus_client.parser import text_string_to_metric_families


class Samples(dict[str, float]):
    """Values by what identifies them, written as in a query: `name{label="value"}`, labels by name; 0 if missing."""

    def __missing__(self, key: str) -> float:
        return 0.0

    def sum(self, name: str, **labels: str) -> float:
        """The sum over all samples of this name that have these labels."""
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        return sum(
            value for key, value in self.items() if key.partition("{")[0] == name and all(one in key for one in wanted)
        )


def samples(text: str) -> Samples:
    """Each sample once, and every family announced before it."""
    found = Samples()
    for family in text_string_to_metric_families(text):
        assert family.documentation, family.name
        assert family.type in ("counter", "gauge", "histogram"), family.name
        for sample in family.samples:
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            key = f"{sample.name}{{{labels}}}"
            assert key not in found, key
            found[key] = sample.value
    return found
