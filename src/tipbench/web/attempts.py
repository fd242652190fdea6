"""Failed attempts, limited by address. A right token is let in, whatever came from its address before.

Checking first costs little: a made token is 256 random bits and one that an operator sets has 20 characters or more, so
there is nothing to guess, and a check is a few digests. Memory is bounded. When there are more addresses than there is
room for, the one that failed the longest ago is forgotten: whoever has that many addresses has as many attempts.
"""

import ipaddress
import math
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

LIMIT = 10
WINDOW_S = 300.0
_ROOM = 4096
_Found = TypeVar("_Found")


class TooManyAttempts(Exception):
    """A wrong token, from an address that failed too often."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(f"wait {wait_s} s")
        self.wait_s = wait_s


class Attempts:
    """Ten failures in five minutes; the next ones are told to wait."""

    def __init__(self, clock: Callable[[], float], room: int = _ROOM) -> None:
        self._clock = clock
        self._room = room
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def tried(self, address: str, token: str, check: Callable[[str], _Found | None]) -> _Found | None:
        """What a check finds for a token, None being a failure; raises TooManyAttempts for one failure too many."""
        found = check(token)
        if found is None:
            self.failed(address)
        return found

    def failed(self, address: str) -> None:
        """Count a failure of this address, or raise TooManyAttempts where it has failed too often already."""
        network, now = _network(address), self._clock()
        with self._lock:
            failures = self._failures.setdefault(network, deque())
            while failures and not now - WINDOW_S < failures[0] <= now:
                failures.popleft()
            if len(failures) >= LIMIT:
                raise TooManyAttempts(math.ceil(failures[0] + WINDOW_S - now))
            failures.append(now)
            self._failures.move_to_end(network)
            while len(self._failures) > self._room:
                self._failures.popitem(last=False)

    def __len__(self) -> int:
        """How many addresses are remembered."""
        return len(self._failures)


@lru_cache(256)
def _network(address: str) -> str:
    """One customer of an IPv6 provider has a /64 to choose addresses from; IPv4 behind IPv6 is still IPv4."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((int(parsed), 64), strict=False))
    return str(parsed)
