"""All that it takes to know who is asking."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tipbench.web.attempts import Attempts
from tipbench.web.private_files import server_secret
from tipbench.web.sessions import Sessions
from tipbench.web.tokens import Grant, Tokens


class TooManyAttempts(Exception):
    """An address failed too often; its token was not looked at."""

    def __init__(self, wait_s: int) -> None:
        super().__init__(f"wait {wait_s} s")
        self.wait_s = wait_s


@dataclass(frozen=True)
class Access:
    tokens: Tokens
    sessions: Sessions
    attempts: Attempts

    def grant_of(self, token: str, address: str) -> Grant | None:
        """Whose token it is, for somebody at this address; raises TooManyAttempts."""
        wait_s = self.attempts.wait_s(address, token)
        if wait_s:
            raise TooManyAttempts(wait_s)
        grant = self.tokens.grant_of(token)
        if grant:
            self.attempts.succeeded(address, token)
        else:
            self.attempts.failed(address)
        return grant


def open_access(home: Path, clock: Callable[[], float], given_admin: str = "") -> Access:
    """Over the files in the home's server folder, which are made where they are missing."""
    tokens = Tokens(home, clock, given_admin)
    return Access(tokens, Sessions(server_secret(home), tokens, clock), Attempts(clock))
