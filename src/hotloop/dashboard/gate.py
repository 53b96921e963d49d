"""Who may ask the dashboard, and what a browser may do with its answers.

Covered, each with a test of its name: pages of other sites (Host, Origin and Sec-Fetch-Site are
checked, so neither a rebound name nor a cross-site request gets an answer); other methods than GET
and HEAD; a missing or wrong token; scripts and styles that are not ours (content security policy
without `unsafe-inline`, and no HTML sink for scripts), frames, sniffing, caches, referrers. Not
covered: other users of this machine where no token is asked for, and reading along on the network:
there is no TLS.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""What is not named is forbidden."""
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
LEAST_TOKEN = 16
"""Characters of a token that others may try to guess."""
_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[^:\[\]@/\s]+)(?::(?P<port>\d{1,5}))?")
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_TOKEN = "token"
_ASK = "open the address with ?token=... that `hotloop serve` printed when it started"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address or name."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Who is let in."""

    host: str
    """The address that the server is bound to."""
    token: str | None
    """None: nobody is asked for one."""

    @property
    def names(self) -> frozenset[str]:
        """Names under which a browser may know this server."""
        if is_loopback(self.host):
            return _LOOPBACK | {self.host}
        own = socket.gethostname().lower()
        return _LOOPBACK | {self.host.lower(), own, own.split(".")[0], socket.getfqdn().lower()}

    def knows(self, host_header: str) -> bool:
        """Whether a Host header names this server.

        A page of another site can have its own name point at this machine; it cannot make a
        browser send one of ours. Where others may connect, any literal address is ours too.
        """
        match = _HOST.fullmatch(host_header.strip())
        if match is None:
            return False
        name = match["name"].strip("[]").lower()
        if name in self.names:
            return True
        if is_loopback(self.host):
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def fits(self, token: str) -> bool:
        """Whether this is the token, in a time that says nothing about it."""
        return hmac.compare_digest(_digest(token), _digest(self.token or ""))

    @property
    def cookie(self) -> str:
        """What a browser keeps instead of the token."""
        return hashlib.sha256(b"hotloop dashboard\0" + _digest(self.token or "")).hexdigest()

    def fits_cookie(self, value: str) -> bool:
        """Whether a browser has shown the token before."""
        return hmac.compare_digest(_digest(value), _digest(self.cookie))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class Gate:
    """Lets a request through to the pages, or answers it with one line."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        """Stand before `app`."""
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # websockets: there are none

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        refusal = self._refusal(scope)
        await (self._app if refusal is None else refusal)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._admission.knows(host):
            return _no(403, "this name is not this server's; use the address that was printed")
        if scope["method"] not in ("GET", "HEAD"):
            return _no(405, "the dashboard only shows: GET and HEAD", {"Allow": "GET, HEAD"})
        if _is_from_elsewhere(headers, host):
            return _no(403, "requests from other sites are not answered; open it in its own tab")
        return None if self._admission.token is None else self._unproved(scope, headers, host)

    def _unproved(self, scope: Scope, headers: Headers, host: str) -> Response | None:
        """Return what to answer who has not shown the token; None for who has."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == _TOKEN]
        name = _cookie_name(host)
        if given:
            if not self._admission.fits(given[-1]):
                return _no(401, f"this is not the token; {_ASK}")
            rest = urlencode([(n, value) for n, value in query if n != _TOKEN])
            path = "/" + scope["path"].lstrip("/\\")  # never //elsewhere
            target = RedirectResponse(f"{path}?{rest}" if rest else path, status_code=303)
            # Lax: with Strict, who follows a link from a chat is asked for the token again.
            target.set_cookie(name, self._admission.cookie, httponly=True, samesite="lax", path="/")
            return target
        if self._admission.fits_cookie(_cookie(headers, name)):
            return None
        return _no(401, f"a token is needed; {_ASK}")


def _is_from_elsewhere(headers: Headers, host: str) -> bool:
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return True
    site = headers.get("sec-fetch-site", "none")
    if site in ("same-origin", "none"):
        return False
    # A link on another page may lead here; nothing else of it may.
    goes_there = headers.get("sec-fetch-mode") == "navigate"
    return not (goes_there and headers.get("sec-fetch-dest") == "document")


def _cookie_name(host: str) -> str:
    # Cookies do not tell ports apart: two dashboards of one host would throw each other out.
    return (
        f"hotloop-{host.rpartition(':')[2]}" if host[-1:].isdigit() and ":" in host else "hotloop"
    )


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _no(status: int, why: str, headers: Mapping[str, str] | None = None) -> Response:
    return PlainTextResponse(f"hotloop: {why}\n", status_code=status, headers=headers)
