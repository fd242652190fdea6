"""Priors in the state database, so that all machines that serve from it have the same."""

from collections.abc import Mapping
from typing import Any

from tipbench.recommender.prior.interface import PriorRecord, no_prior_error, parse_prior
from tipbench.recommender.promotion.immutable_records import check_id, decode_record, encode_record
from tipbench.recommender.store.postgresql_connections import Connections

_PUT = "INSERT INTO tipbench_priors VALUES (%s, %s::json) ON CONFLICT DO NOTHING"
_READ = "SELECT content::text FROM tipbench_priors WHERE digest = %s"
_DIGESTS = "SELECT digest FROM tipbench_priors ORDER BY digest"


class PostgresPriors:
    def __init__(self, connections: Connections, address: str) -> None:
        self._connections = connections
        self._address = f"tipbench_priors of {address}"

    def put(self, content: Mapping[str, Any]) -> str:
        digest, text = encode_record(content)
        with self._connections.execute(_PUT, [digest, text.decode()]):
            return digest

    def read(self, digest: str) -> PriorRecord:
        check_id(digest)
        with self._connections.execute(_READ, [digest]) as cursor:
            row = cursor.fetchone()
        if row is None:
            raise no_prior_error(digest, self._address)
        address = f"the prior {digest} in {self._address}"
        return parse_prior(decode_record(row[0], digest, address), address)

    def digests(self) -> list[str]:
        with self._connections.execute(_DIGESTS) as cursor:
            return [digest for (digest,) in cursor.fetchall()]
