"""What an endpoint reports, as an error of our own tree: by status and by code, not by wording.

Statuses are HTTP's; codes are OpenAI's, which the compatible endpoints use where they use any.
"""

from __future__ import annotations

import email.utils
import time
from collections.abc import Mapping
from typing import Any

from hotloop.errors import (
    AuthError,
    BadReply,
    ContextOverflow,
    EndpointDown,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    Refused,
    RequestRejected,
    UnknownModel,
)

MAX_QUOTED_CHARACTERS = 300

_BY_CODE: Mapping[str, type[ProviderError]] = {
    "insufficient_quota": QuotaExhausted,
    "context_length_exceeded": ContextOverflow,
    "model_not_found": UnknownModel,
    "content_filter": Refused,
    "content_policy_violation": Refused,
    "invalid_api_key": AuthError,
    "rate_limit_exceeded": RateLimited,
    "server_error": EndpointDown,
    "overloaded_error": EndpointDown,
}

_BY_STATUS: Mapping[int, type[ProviderError]] = {
    400: RequestRejected,
    401: AuthError,
    402: QuotaExhausted,
    403: AuthError,
    404: UnknownModel,
    408: EndpointDown,
    409: EndpointDown,
    413: ContextOverflow,
    422: RequestRejected,
    425: EndpointDown,
    429: RateLimited,
}

_HINTS: Mapping[type[ProviderError], str] = {
    AuthError: "check the key",
    QuotaExhausted: "add credit, or use another model",
    UnknownModel: "check the model's name and the URL",
    ContextOverflow: "shorten the prompt, or use a model with a longer context",
    Refused: "change the words of the problem, or use another model",
}


def status_fault(status: int, body: Any, headers: Mapping[str, str]) -> ProviderError:
    """Return the error for an HTTP status outside 200-299."""
    detail = _details(body)
    retry_after_s = parse_retry_after_s(headers)
    kind = _BY_CODE.get(_code(detail)) or _BY_STATUS.get(status)
    if kind is None and status >= 500:
        # Overloaded servers say with Retry-After when to come again.
        kind = EndpointDown if retry_after_s is None else RateLimited
    return _make(kind or BadReply, f"HTTP {status}", detail, retry_after_s)


def body_fault(body: Any) -> ProviderError:
    """Return the error for an error record that came with status 200."""
    detail = _details(body)
    code = _code(detail)
    status = int(code) if code.isdecimal() and len(code) == 3 else 0
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status)
    if kind is None and status >= 500:
        kind = EndpointDown
    return _make(kind or BadReply, "an error with status 200", detail, None)


def parse_retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that a response asks for (RFC 9110: seconds or a date)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _number(value: str | None) -> float | None:
    try:
        number = float(value or "")
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _make(
    kind: type[ProviderError], what: str, detail: Mapping[str, Any], retry_after_s: float | None
) -> ProviderError:
    said = " ".join(str(detail.get("message") or "").split())[:MAX_QUOTED_CHARACTERS]
    message = f"{what}: {said}" if said else what
    if kind in _HINTS:
        message = f"{message}; {_HINTS[kind]}"
    if kind is RateLimited:
        return RateLimited(message, retry_after_s=retry_after_s)
    if kind is RequestRejected:
        parameter = detail.get("param")
        return RequestRejected(message, parameter=str(parameter) if parameter else None)
    return kind(message)


def _details(body: Any) -> Mapping[str, Any]:
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        return inner if isinstance(inner, Mapping) else {"message": inner}
    return {"message": body}


def _code(detail: Mapping[str, Any]) -> str:
    for name in ("code", "type"):
        value = str(detail.get(name) or "")
        if value in _BY_CODE or value.isdecimal():
            return value
    return ""
