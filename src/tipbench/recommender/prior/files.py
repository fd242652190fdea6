"""Priors in files, one each, read-only and named by their content."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tipbench.core.errors import NotFound
from tipbench.core.files import atomic_write, private_folder
from tipbench.recommender.prior.interface import PriorRecord, no_prior_error, parse_prior
from tipbench.recommender.promotion.immutable_records import encode_record, read_record, record_ids

PRIORS = "priors"  # folder name, next to the folder of states
_READ_ONLY = 0o400


class FilePriors:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, content: Mapping[str, Any]) -> str:
        digest, text = encode_record(content)
        atomic_write(private_folder(self._folder) / f"{digest}.json", text, mode=_READ_ONLY, durable=True)
        return digest

    def read(self, digest: str) -> PriorRecord:
        try:
            data = read_record(self._folder, digest)
        except NotFound:
            raise no_prior_error(digest, str(self._folder)) from None
        return parse_prior(data, str(self._folder / f"{digest}.json"))

    def digests(self) -> list[str]:
        return sorted(record_ids(self._folder))
