"""What a failure repeats of the credentials it was asked with is masked, whatever the pieces; nothing else changes."""

from collections.abc import Mapping

import pytest

from combos.core.facts import Headers
from combos.upstream.echoes import SHORTEST, unechoed
from combos.upstream.session import Upstream
from exchanges import PATIENT, body_of, outbound
from rawserver import Again, Expect, RawServer, Send, response

KEY = "canary-0123456789"
SECRETS: Headers = ((b"Authorization", b"Bearer " + KEY.encode()),)
MASK = "*" * len(KEY)


async def told(
    answer: bytes, secrets: Headers = SECRETS, split: int | None = None, configured: Mapping[str, str] | None = None
) -> tuple[Headers, str]:
    async with RawServer([Again([Expect(), Send(answer, split)])]) as server:
        upstream = Upstream()
        try:
            request = outbound(f"{server.url}/v1")
            config = request.provider.config.model_copy(update={"headers": configured or {}})
            made = unechoed(await upstream.send(request, PATIENT, secrets), secrets, config)
            return made.headers, (await body_of(made)).decode()  # type: ignore[arg-type]
        finally:
            await upstream.close()


@pytest.mark.parametrize("split", [None, 1, 7])
@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"Incorrect API key provided: {KEY}.", f"Incorrect API key provided: {MASK}."),
        (f"{KEY}{KEY[:5]}", f"{MASK}{KEY[:5]}"),
        (f"Bearer {KEY}", "*" * (len(KEY) + 7)),
        ("nothing of the kind: canary", "nothing of the kind: canary"),
        ("", ""),
    ],
)
async def test_an_echo_in_a_body(said: str, shown: str, split: int | None) -> None:
    assert (await told(response(401, said.encode()), split=split))[1] == shown


async def test_an_echo_in_a_header() -> None:
    headers, _ = await told(response(403, b"", [(b"WWW-Authenticate", b'Bearer error="' + KEY.encode() + b'"')]))
    assert (b"WWW-Authenticate", b'Bearer error="' + MASK.encode() + b'"') in headers


async def test_configured_fields_count_when_their_name_says_that_they_are_secret() -> None:
    said = b"not allowed: team-0123456789 from production-cluster"
    configured = {"x-team-token": "team-0123456789", "x-place": "production-cluster"}
    made = await told(response(500, said), (), configured=configured)
    assert made[1] == "not allowed: *************** from production-cluster"


async def test_a_short_credential_is_a_word_like_others() -> None:
    short = "x" * (SHORTEST - 1)
    assert (await told(response(500, short.encode()), ((b"x-api-key", short.encode()),)))[1] == short


async def test_what_a_model_writes_is_left_alone() -> None:
    assert (await told(response(200, KEY.encode())))[1] == KEY
