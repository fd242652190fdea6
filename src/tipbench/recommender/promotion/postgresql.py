"""The history in the database of states, so that all machines that serve from it agree on who is live."""

from tipbench.recommender.promotion.interface import Act, live_history, read_acts, was_changed
from tipbench.recommender.store.postgresql_connections import Connections

_LAST = "SELECT max(number) FROM tipbench_promotions"
_ACTS = "SELECT act::text FROM tipbench_promotions ORDER BY number"
_ADD = (
    "INSERT INTO tipbench_promotions SELECT %s, %s::json WHERE (SELECT count(*) FROM tipbench_promotions) = %s "
    "ON CONFLICT DO NOTHING"
)


class PostgresPromotions:
    look_again_s = 1.0  # a question to the database, and it would be one with every request

    def __init__(self, connections: Connections, address: str) -> None:
        self._connections = connections
        self.address = f"tipbench_promotions of {address}"

    def mark(self) -> object:
        with self._connections.begun(_LAST) as cursor:
            return cursor.fetchone()

    def history(self) -> tuple[Act, ...]:
        with self._connections.begun(_ACTS) as cursor:
            return read_acts([text for (text,) in cursor.fetchall()], self.address)

    def append(self, act: Act, known: int) -> None:
        acts = self.history()
        if len(acts) != known:
            raise was_changed(acts, self.address)
        live_history((*acts, act), self.address)
        with self._connections.begun(_ADD, [known + 1, act.as_json(), known]) as cursor:
            added = cursor.rowcount
        if not added:
            raise was_changed(self.history(), self.address)
