"""Something for each key, made when it is asked for; of many keys the last ones."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """May be used from several threads."""

    def __init__(self, most: int, make: Callable[[], T]) -> None:
        self._most = most
        self._make = make
        self._lock = threading.Lock()
        self._things: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str) -> T:
        with self._lock:
            thing = self._things.pop(key, None)
            self._things[key] = thing = self._make() if thing is None else thing
            while len(self._things) > self._most:
                self._things.popitem(last=False)
            return thing

    def drop(self, key: str) -> None:
        with self._lock:
            self._things.pop(key, None)
