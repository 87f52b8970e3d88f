"""Who may do what: one layer that every request passes, whether it is for data, events, actions or the page.

Nothing is served that `ACCESS` does not list. A request proves that it may be answered by

- the token in an Authorization header, which no browser adds by itself; or
- its Host header, which must be a name of this server: otherwise a page of another site could have its own
  name resolve to this machine (DNS rebinding). If more than reading is needed, also
- the cookie of a session together with evidence that a page of this server sent the request.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from starlette.requests import HTTPConnection

from pgtrickle.interfaces.http.attempts import Attempts
from pgtrickle.interfaces.http.sessions import Sessions
from pgtrickle.interfaces.http.tokens import Token
from pgtrickle.model.errors import RequestRefused, TokenNeeded, TooManyAttempts

OWN_HEADER: Final = "x-pgtrickle"
"""A header that the page sends. Pages of other origins would have to ask first, and are refused."""


PROBES: Final = ("/healthz", "/readyz")


class Need(Enum):
    """What a request needs."""

    NOTHING = "nothing"
    READ = "the token, unless the server is on the loopback interface"
    TOKEN = "the token"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request. `session` is the secret of the session that a browser has."""

    has_token: bool
    may_read: bool
    session: str | None = None


@dataclass(slots=True)
class Gate:
    """Decides about requests. `names` are those of this server, in lower case and without port."""

    token: Token
    names: frozenset[str]
    port: int
    is_loopback: bool
    sessions: Sessions
    attempts: Attempts

    @property
    def cookie(self) -> str:
        """The name of the cookie. Browsers send cookies to all ports of a host."""
        return f"pgtrickle_{self.port}"

    def caller(self, request: HTTPConnection) -> Caller:
        """Who sends this request; raise if it does not concern this server, or its token is wrong."""
        bearer = _bearer(request.headers)
        # the path of request.url begins with what the Host header says
        path = request.scope["path"]
        is_api = path.startswith("/api/")
        if bearer is None and path in PROBES and not self._is_own_name(request):
            # orchestrators ask by the number of an address; they learn nothing but the status
            return Caller(has_token=False, may_read=False)
        if bearer is None and not self._is_own_name(request):
            raise RequestRefused(
                "the server does not answer for the name in this address",
                hint="open the address that `pgtrickle run` prints, or allow the name with --http-host",
            )
        self._check_origin(request)
        if is_api:
            # other pages may link to the page of this server, but not use its API
            self._check_site(request.headers)
        if bearer is not None:
            self.check_token(bearer, request)
            return Caller(has_token=True, may_read=True)
        secret = request.cookies.get(self.cookie)
        if secret and self.sessions.is_open(secret) and self._is_own_page(request.headers):
            return Caller(has_token=True, may_read=True, session=secret)
        return Caller(has_token=False, may_read=self.is_loopback)

    def authorise(self, caller: Caller, need: Need | None) -> None:
        """Raise unless the caller has what a route needs. A route that is not listed needs the token."""
        is_enough = {Need.NOTHING: True, Need.READ: caller.may_read, Need.TOKEN: caller.has_token}
        if not is_enough.get(need or Need.TOKEN, False):
            raise TokenNeeded(
                "this needs the token of the HTTP server",
                hint="send it as Authorization: Bearer …, or sign in on the page",
            )

    def check_token(self, given: str, request: HTTPConnection) -> None:
        """Raise unless this is the token."""
        address = request.client.host if request.client else ""
        if not self.attempts.is_allowed(address):
            raise TooManyAttempts(
                "too many wrong tokens came from this address", hint="try again in a minute"
            )
        if not self.token.matches(given):
            self.attempts.note_failure(address)
            raise TokenNeeded("the token is wrong", hint="`pgtrickle run` prints where the token is")

    def check_login(self, token: str | None, code: str | None, request: HTTPConnection) -> None:
        """Raise unless a browser may have a session: it has the token, or the code of a login link."""
        if not self._is_own_page(request.headers):
            raise RequestRefused("only the page of this server can sign in", hint="open its address")
        if code is None or not self.sessions.use_code(code):
            self.check_token(token or "", request)

    def _is_own_name(self, request: HTTPConnection) -> bool:
        hosts = request.headers.getlist("host")
        return len(hosts) == 1 and _host_name(hosts[0]) in self.names

    def _check_site(self, headers: Mapping[str, str]) -> None:
        """Browsers say whether a page of another site sends a request."""
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise RequestRefused("the request comes from a page of another origin", hint=_OPEN)

    def _check_origin(self, request: HTTPConnection) -> None:
        origin = request.headers.get("origin")
        if origin is not None and not _is_same_origin(origin, request.headers.get("host", "")):
            raise RequestRefused("the request comes from a page of another origin", hint=_OPEN)

    def _is_own_page(self, headers: Mapping[str, str]) -> bool:
        """Whether there is evidence that a page of this server sent a request.

        Older browsers, and all on addresses without TLS that are not loopback, send no Sec-Fetch-Site. Then
        the Origin, which was checked, or a header of ours is evidence.
        """
        site = headers.get("sec-fetch-site")
        if site is not None:
            return site == "same-origin"
        return "origin" in headers or OWN_HEADER in headers


_HOST: Final = re.compile(
    r"(?:(?P<name>[\w.-]+)|\[(?P<address>[0-9a-f:.]+)\])(?::[0-9]{1,5})?", re.ASCII | re.IGNORECASE
)
_OPEN: Final = "open the page of this server, or use the token in a program"


def _bearer(headers: Mapping[str, str]) -> str | None:
    """The token of a request; None if it has no Authorization header."""
    given = headers.get("authorization")
    if given is None:
        return None
    scheme, _, token = given.partition(" ")
    return token.strip() if hmac.compare_digest(scheme.lower().encode(), b"bearer") else ""


def _host_name(host: str) -> str | None:
    """The name in a Host header, in lower case and without the port; None if it cannot be read."""
    found = _HOST.fullmatch(host)
    return (found["name"] or found["address"]).lower() if found else None


def _is_same_origin(origin: str, host: str) -> bool:
    """Whether an origin is that of the host. The scheme may be that of a proxy in front."""
    scheme, separator, rest = origin.partition("://")
    if not separator or scheme not in ("http", "https"):
        return False
    default = ":443" if scheme == "https" else ":80"
    return rest.lower().removesuffix(default) == host.lower().removesuffix(default)
