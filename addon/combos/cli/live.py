"""The running proxy, as the command line finds and asks it: over its management API, on this machine only."""

import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import field
from http import HTTPStatus
from pathlib import Path
from typing import Any

from combos.admin.admin_token import FILE_NAME as TOKEN_FILE
from combos.admin.admin_token import VARIABLE as TOKEN_VARIABLE
from combos.admin.admin_token import TokenError, admin_token
from combos.admin.runtime_file import running_at
from combos.core.destinations import split_url
from combos.core.values import dataclass

VARIABLE = "COMBOS_ADMIN_URL"
_EXAMPLE = "http://127.0.0.1:10100"
_WAIT_S = 3.0
_ANSWER_MAX = 64 * 1024 * 1024


_SERVER = "combos"  # how every answer of the management API signs itself


class LiveError(Exception):
    """The running proxy cannot be asked, or refused. `status` is None when it did not answer at all."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token goes nowhere else: a redirect is an answer like any other."""

    def redirect_request(self, *_: Any) -> None:
        """Never."""


@dataclass(frozen=True, slots=True)
class Live:
    """A running proxy. Proxies of the environment are not used for it. `source` says where the token is from."""

    url: str
    token: str = field(repr=False)
    source: str = ""

    def call(self, method: str, path: str, body: object = None, wait_s: float = _WAIT_S) -> Any:
        """The JSON of an answer. Raises `LiveError`."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310 - http, see find_live
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects)
        try:
            with opener.open(request, timeout=wait_s) as answer:
                if answer.headers.get("Server") != _SERVER:
                    raise LiveError(f"what answers at {self.url} is not the management API")
                return json.loads(answer.read(_ANSWER_MAX))
        except urllib.error.HTTPError as error:
            with error:
                raise LiveError(self._refusal(error), error.code) from None
        except (OSError, ValueError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise LiveError(f"{self.url} does not answer: {getattr(reason, 'strerror', None) or reason}") from None

    def _refusal(self, error: urllib.error.HTTPError) -> str:
        if error.code == HTTPStatus.UNAUTHORIZED and self.source:
            return f"the proxy at {self.url} takes another admin token than that of {self.source}"
        return _message(error)


def url_of(config: Path, environ: Mapping[str, str]) -> str:
    """Where the proxy of this configuration is. Raises `LiveError` when none runs."""
    url = known_url(config, environ)
    if url is None:
        raise LiveError(f"no proxy is running for {config}")
    return url


def known_url(config: Path, environ: Mapping[str, str]) -> str | None:
    """Where the proxy of this configuration is: `$COMBOS_ADMIN_URL`, else what it says beside the file.

    Raises `LiveError` for a variable that holds no address.
    """
    named = environ.get(VARIABLE, "").strip().rstrip("/")
    if named:
        parts = split_url(named)
        if isinstance(parts, str) or parts.scheme != "http":
            raise LiveError(f"{VARIABLE} must be an address such as {_EXAMPLE}")
        return named
    address = running_at(config.parent)
    if address is None:
        return None
    host, port = address
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def find_live(config: Path, environ: Mapping[str, str]) -> Live | None:
    """The running proxy that works on this configuration; None when there is none, or it is another's."""
    try:
        live = open_live(config, environ)
        live.call("GET", "/api/combos")
    except LiveError:
        return None
    return live


def open_live(config: Path, environ: Mapping[str, str]) -> Live:
    """A client, without asking yet. Raises `LiveError`: not running, or no token to show.

    The token is shown only where this configuration's own proxy said that it listens.
    """
    url = url_of(config, environ)
    source = TOKEN_VARIABLE if environ.get(TOKEN_VARIABLE, "").strip() else str(config.parent / TOKEN_FILE)
    try:
        return Live(url, admin_token(config.parent, environ, create=False), source)
    except TokenError as error:
        raise LiveError(f"there is no admin token: {error}") from None


def _message(error: urllib.error.HTTPError) -> str:
    try:
        return str(json.loads(error.read(_ANSWER_MAX))["error"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"status {error.code}"
