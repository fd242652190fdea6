"""The history in the state database, so that all machines that serve from it agree on the live policy."""

from tipbench.recommender.promotion.interface import Act, changed_error, live_history, read_acts
from tipbench.recommender.store.postgresql_connections import Connections

_LAST = "SELECT max(number) FROM tipbench_promotions"
_ACTS = "SELECT act::text FROM tipbench_promotions ORDER BY number"
_ADD = (
    "INSERT INTO tipbench_promotions SELECT %s, %s::json WHERE (SELECT count(*) FROM tipbench_promotions) = %s "
    "ON CONFLICT DO NOTHING"
)


class PostgresPromotions:
    poll_interval_s = 1.0  # otherwise every request would query the database

    def __init__(self, connections: Connections, address: str) -> None:
        self._connections = connections
        self.address = f"tipbench_promotions of {address}"

    def revision(self) -> object:
        with self._connections.execute(_LAST) as cursor:
            return cursor.fetchone()

    def history(self) -> tuple[Act, ...]:
        with self._connections.execute(_ACTS) as cursor:
            return read_acts([text for (text,) in cursor.fetchall()], self.address)

    def append(self, act: Act, known: int) -> None:
        acts = self.history()
        if len(acts) != known:
            raise changed_error(acts, self.address)
        live_history((*acts, act), self.address)
        with self._connections.execute(_ADD, [known + 1, act.as_json(), known]) as cursor:
            added = cursor.rowcount
        if not added:
            raise changed_error(self.history(), self.address)
