"""All that it takes to know who is asking."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tipbench.web.attempts import Attempts
from tipbench.web.sessions import Sessions
from tipbench.web.token_utilities import server_secret
from tipbench.web.tokens import Grant, Tokens


@dataclass(frozen=True)
class Access:
    tokens: Tokens
    sessions: Sessions
    attempts: Attempts

    def grant_of(self, token: str, address: str) -> Grant | None:
        """Whose token it is, for somebody at this address; raises TooManyAttempts."""
        return self.attempts.tried(address, token, self.tokens.grant_of)


def open_access(home: Path, clock: Callable[[], float], given_admin: str = "") -> Access:
    """Over the files in the home's server folder, which are made where they are missing."""
    tokens = Tokens(home, clock, given_admin)
    return Access(tokens, Sessions(server_secret(home), tokens, clock), Attempts(clock))
