"""ServeOptions: where the service listens, and what it accepts."""

import os
from dataclasses import dataclass
from ipaddress import ip_address

from spit.options import Options, documented, option

MIB = 2**20
TOKEN = "SPIT_TOKEN"  # in the environment, where other users of the machine do not see it


@documented
@dataclass(frozen=True)
class ServeOptions(Options):
    """The options of ``spit serve``, models and device left out.

    Example:
        >>> from spit.serve.options import ServeOptions
        >>> ServeOptions(port=8000).local
        True
    """

    host: str = option("127.0.0.1", "Address to listen on; anything but this machine needs --token")
    port: int = option(7860, "Port to listen on; 0 takes a free one", least=0, most=65535)
    token: str | None = option(
        None, "Secret that requests must send as Authorization: Bearer TOKEN (default: $SPIT_TOKEN, or none)",
        metavar="SECRET")
    queue: int = option(64, "Requests taken at a time; others are answered with 503 and Retry-After", least=1)
    batch: int | None = option(None, "Images in a batch (default: on a GPU 32, on a CPU 8)", least=1)
    time_limit: float = option(30.0, "Seconds for a request, from its first byte", above=0)
    max_megabytes: int = option(16, "Largest request, in MiB", least=1)
    max_pixels: int = option(25_000_000, "Refuse images of more pixels", least=1)
    max_side: int = option(1024, "Largest max_side that a request can ask for", least=16)
    pictures: int = option(32, "Pictures that the explorer's page keeps, of all users together", least=1)
    picture_megabytes: int = option(
        256, "Memory for the page's pictures, in MiB; those used longest ago go first", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.token is None and os.environ.get(TOKEN):
            object.__setattr__(self, "token", os.environ[TOKEN])
        if self.token is not None and (len(self.token) < 8 or not self.token.isascii() or not self.token.isprintable()
                                       or " " in self.token):
            raise ValueError("expected a token of at least 8 printable ASCII characters without spaces")
        if not self.local and self.token is None:
            raise ValueError(f"expected --token with host {self.host}, since other machines can reach it; "
                             "python -c 'import secrets; print(secrets.token_urlsafe())' makes one")

    @property
    def local(self) -> bool:
        """Whether only this machine can reach the service."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def max_bytes(self) -> int:
        """Largest request in bytes."""
        return self.max_megabytes * MIB
