"""Who is asking."""

from dataclasses import dataclass
from typing import Literal

Role = Literal["admin", "judge"]


@dataclass(frozen=True)
class Visitor:
    """Somebody who has shown a token, or a cookie that was given for one."""

    role: Role
    name: str  # a judge's name, by which scores are signed; an admin judges as "person"

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"
