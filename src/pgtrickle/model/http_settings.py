"""The settings of the HTTP server."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final

from pgtrickle.model.setting import Setting

DEFAULT_PORT: Final = 8432


@dataclass(frozen=True, slots=True)
class HttpAddress:
    """The interface and the port that a server listens on; port 0 is any free port."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only processes of this machine can connect."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def http_address(text: str) -> HttpAddress | None:
    """Parse `127.0.0.1:8432`, `[::1]:8432`, `:8432` or `8432`; `off` is None."""
    wrong = ValueError("an address such as 127.0.0.1:8432, or off")
    text = text.strip()
    if text.lower() == "off":
        return None
    host, separator, port = text.rpartition(":")
    if not separator and not port.isdigit():
        host, port = text, str(DEFAULT_PORT)
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise wrong
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host or any(character in host for character in "/@ []"):
        raise wrong
    return HttpAddress(host or "127.0.0.1", int(port))


def host_names(text: str) -> tuple[str, ...]:
    """Parse a list of host names with commas between them."""
    names = tuple(name.strip().lower() for name in text.split(",") if name.strip())
    if any(character in name for name in names for character in "/@: "):
        raise ValueError("names with commas between them, without scheme and port")
    return names


HTTP: Final[Setting[HttpAddress | None]] = Setting(
    "http",
    None,
    http_address,
    "Serve the HTTP API and the web page at this address, such as 127.0.0.1:8432. An address that is not on "
    "the loopback interface needs a token.",
    "off",
)
HTTP_TOKEN_FILE: Final[Setting[str | None]] = Setting(
    "http_token_file",
    None,
    str,
    "The file with the token of the HTTP API, one line of at least 16 characters. Without a token, "
    "pgtrickle run makes one and prints where it is.",
    "none",
)
HTTP_TOKEN: Final[Setting[str | None]] = Setting(
    "http_token",
    None,
    str,
    "The token of the HTTP API itself, if there is no file. There is no option for it, because other users "
    "can read command lines.",
    "none",
    is_option=False,
)
HTTP_HOST: Final[Setting[tuple[str, ...]]] = Setting(
    "http_host",
    (),
    host_names,
    "Further names under which the HTTP server is reached, with commas between them. Requests for other "
    "names are refused.",
    "the name or address in --http; on the loopback interface, localhost",
)
HTTP_DSN: Final[Setting[str | None]] = Setting(
    "http_dsn",
    None,
    str,
    "The address of the database for commands that come by HTTP, with a role of their own.",
    "that of the sidecar",
)
