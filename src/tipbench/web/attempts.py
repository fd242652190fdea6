"""Failed attempts, limited by address: a guard against noise and weak tokens; ours can't be guessed anyway.

Memory is bounded. When there are more addresses than there is room for, the one that failed the longest ago is
forgotten: whoever has that many addresses has as many attempts.
"""

import hashlib
import hmac
import ipaddress
import math
import secrets
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

LIMIT = 10
WINDOW_S = 300.0
_ROOM = 4096
_GOOD_PER_ADDRESS = 16
_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_Found = TypeVar("_Found")


class TooManyAttempts(Exception):
    """An address failed too often; its token was not looked at."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(f"wait {wait_s} s")
        self.wait_s = wait_s


class Attempts:
    """Ten failures in five minutes, then an address has to wait, but for the tokens that were good there before."""

    def __init__(self, clock: Callable[[], float], room: int = _ROOM) -> None:
        self._clock = clock
        self._room = room
        self._key = secrets.token_bytes(32)
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._good: OrderedDict[str, OrderedDict[bytes, None]] = OrderedDict()
        self._turn = threading.Lock()

    def tried(self, address: str, token: str, check: Callable[[str], _Found | None]) -> _Found | None:
        """What a check finds for a token, None being a failure; raises TooManyAttempts."""
        wait_s = self.wait_s(address, token)
        if wait_s:
            raise TooManyAttempts(wait_s)
        found = check(token)
        if found is None:
            self.failed(address)
        else:
            self.succeeded(address, token)
        return found

    def wait_s(self, address: str, token: str) -> int:
        """Whole seconds until this address may try this token; 0: now."""
        place, now = _place(address), self._clock()
        with self._turn:
            failures = self._failures.get(place)
            while failures and not now - WINDOW_S < failures[0] <= now:
                failures.popleft()
            if not failures:
                self._failures.pop(place, None)
                return 0
            if len(failures) < LIMIT or self._mark(token) in self._good.get(place, {}):
                return 0
            return math.ceil(failures[0] + WINDOW_S - now)

    def failed(self, address: str) -> None:
        place = _place(address)
        with self._turn:
            self._failures.setdefault(place, deque(maxlen=LIMIT)).append(self._clock())
            _keep_newest(self._failures, place, self._room)

    def succeeded(self, address: str, token: str) -> None:
        place, mark = _place(address), self._mark(token)
        with self._turn:
            good = self._good.setdefault(place, OrderedDict())
            good[mark] = None
            _keep_newest(good, mark, _GOOD_PER_ADDRESS)
            _keep_newest(self._good, place, self._room)

    def __len__(self) -> int:
        """How many addresses are remembered."""
        return len(self._failures) + len(self._good)

    def _mark(self, token: str) -> bytes:
        """Stands for a token in memory, where the token itself has no business."""
        return hmac.new(self._key, token.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()


def _keep_newest(kept: OrderedDict[_Key, _Value], newest: _Key, room: int) -> None:
    kept.move_to_end(newest)
    while len(kept) > room:
        kept.popitem(last=False)


@lru_cache(256)
def _place(address: str) -> str:
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
