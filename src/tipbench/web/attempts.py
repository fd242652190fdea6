"""Rate limit on failed logins, by client address. A valid token is always accepted, whatever its address did before.

The token is checked first because that is cheap and safe: generated tokens are 256 random bits and configured ones have
at least 20 characters, so guessing is hopeless, and a check is only a few digests. Memory is bounded: beyond the
maximum number of addresses, the one whose last failure is oldest is dropped. A client with that many addresses gets
that many attempts.
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
_MAX_ADDRESSES = 4096
_Found = TypeVar("_Found")


class TooManyAttempts(Exception):
    """Raised for an invalid token from an address that has failed too often."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(f"wait {wait_s} s")
        self.wait_s = wait_s


class AttemptLimiter:
    """Allows LIMIT failures per address within WINDOW_S seconds; after that, raises TooManyAttempts."""

    def __init__(self, clock: Callable[[], float], max_addresses: int = _MAX_ADDRESSES) -> None:
        self._clock = clock
        self._max_addresses = max_addresses
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def attempt(self, address: str, token: str, check: Callable[[str], _Found | None]) -> _Found | None:
        """Return `check(token)`; None counts as a failure, and raises TooManyAttempts if there were too many."""
        found = check(token)
        if found is None:
            self.record_failure(address)
        return found

    def record_failure(self, address: str) -> None:
        """Count a failure for this address; raise TooManyAttempts if it has failed too often already."""
        network, now = _network(address), self._clock()
        with self._lock:
            failures = self._failures.setdefault(network, deque())
            while failures and not now - WINDOW_S < failures[0] <= now:
                failures.popleft()
            if len(failures) >= LIMIT:
                raise TooManyAttempts(math.ceil(failures[0] + WINDOW_S - now))
            failures.append(now)
            self._failures.move_to_end(network)
            while len(self._failures) > self._max_addresses:
                self._failures.popitem(last=False)

    def __len__(self) -> int:
        """Return the number of addresses that are tracked."""
        return len(self._failures)


@lru_cache(256)
def _network(address: str) -> str:
    """Return the network that failures of this address count for.

    That is the /64 for IPv6, because one customer usually has a whole /64, and the address itself for IPv4, including
    IPv4-mapped IPv6 addresses.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((int(parsed), 64), strict=False))
    return str(parsed)
