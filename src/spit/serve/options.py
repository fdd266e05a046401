"""ServeOptions: where the service listens, which models it has, and what it accepts."""

import os
from dataclasses import dataclass
from ipaddress import ip_address

from spit.options import Options, documented, option

MIB = 2**20
TOKEN = "SPIT_TOKEN"  # in the environment, where other users of the machine do not see it


@documented
@dataclass(frozen=True)
class ServeOptions(Options):
    """The options of ``spit serve``.

    Example:
        >>> from spit.serve.options import ServeOptions
        >>> ServeOptions(port=8000).local
        True
    """

    host: str = option("127.0.0.1", "Address to listen on; anything but this machine needs --token")
    port: int = option(7860, "Port to listen on; 0 takes a free one", least=0, most=65535)
    model: tuple[str, ...] = option(
        ("spit_tiny_16",), "Models to serve, the first by default, as for the other commands; repeat the option or "
        "separate them with commas. Models whose weights come with spit can be asked for as well",
        metavar="NAME|PATH|HUB_ID")
    device: str = option("auto", "cpu, cuda, cuda:1 …, or auto for CUDA if there is any")
    token: str | None = option(
        None, "Secret that requests must send as Authorization: Bearer TOKEN (default: $SPIT_TOKEN, or none)",
        metavar="SECRET")
    queue: int = option(64, "Requests taken at a time; others are answered with 503 and Retry-After", least=1)
    batch: int = option(8, "Most images in a pass", least=1)
    seconds: float = option(30.0, "Time limit of a request, from its first byte", above=0)
    max_megabytes: int = option(16, "Largest request, in MiB", least=1)
    max_pixels: int = option(25_000_000, "Refuse images of more pixels, before they are decoded", least=1)
    max_side: int = option(1024, "Longest side at which a model sees a whole image", least=16)
    pictures: int = option(32, "Pictures that the explorer's page keeps, of all users together", least=1)

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

    @property
    def models(self) -> list[str]:
        """The models asked for, each once."""
        return [*dict.fromkeys(name for given in self.model for name in given.split(","))]
