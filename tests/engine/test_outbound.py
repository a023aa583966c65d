"""What a target receives: address, headers, body."""

import json

import pytest

from combos.core.facts import Headers, TransportFault
from combos.engine.commands import Send
from combos.engine.events import Failed, Started
from combos.upstream.credentials import auth_headers
from playbook import World, config, created, delta, provider, sends

PASSTHROUGH = "internal_chat_message_metadata_passthrough"
CHATGPT = {"adapter": "openai-responses", "baseUrl": "https://chatgpt.com/backend-api/codex", "authMode": "forward"}


def sent(world: World, **kwargs: object) -> Send:
    return (world.turn(**kwargs) >> Started()).sends[0]  # type: ignore[arg-type]


def body_of(send: Send) -> dict[str, object]:
    parsed = json.loads(send.request.body)
    assert isinstance(parsed, dict)
    return parsed


@pytest.mark.parametrize(
    ("wire", "base", "path", "url"),
    [
        ("R", "https://h/v1", "/v1/responses", "https://h/v1/responses"),
        ("R", "https://h/v1/", "/v1/responses?a=b", "https://h/v1/responses?a=b"),
        ("C", "https://h/other/prefix/v1//", "/v1/chat/completions", "https://h/other/prefix/v1/chat/completions"),
        ("M", "https://h", "/v1/messages?beta=true", "https://h/v1/messages?beta=true"),
        ("M", "https://h/v1", "/v1/messages", "https://h/v1/messages"),
        ("M", "https://h/v1", "/v1/messages/count_tokens?beta=true", "https://h/v1/messages/count_tokens?beta=true"),
    ],
)
def test_addresses(wire: str, base: str, path: str, url: str) -> None:
    world = World(config(wire=wire, providers={"alpha": provider("alpha", wire, baseUrl=base)}), wire=wire)
    assert sent(world, path=path).request.url == url


def test_the_body_is_the_clients_byte_for_byte_but_for_the_model() -> None:
    body = b'{ "big": 12345678901234567890123, "model" :"combo/main","f":1.10,\n"input":"\\u00e9 \xe2\x9c\x93"}'
    send = sent(World(config()), body=body)
    assert send.request.body == body.replace(b"combo/main", b"m1")


def test_no_credentials_and_no_foreign_fields() -> None:
    headers: Headers = (
        (b"Authorization", b"Bearer client-token"),
        (b"x-api-key", b"k"),
        (b"Cookie", b"c"),
        (b"content-encoding", b"zstd"),
        (b"Connection", b"x-hop"),
        (b"x-hop", b"1"),
        (b"user-agent", b"codex"),
    )
    send = sent(World(config()), headers=headers)
    names = {name.lower() for name, _ in send.request.headers}
    assert names == {b"user-agent", b"content-type", b"accept-encoding"}
    assert "client-token" not in repr(send)


def test_turn_state_goes_to_its_issuer_only() -> None:
    world = World(config())
    issued = ((b"content-type", b"text/event-stream"), (b"x-codex-turn-state", b"sticky"))
    play = world.turn() >> Started() << sends("alpha/m1")
    play.stream(0, created(), delta("x"), headers=issued)
    echoed: Headers = ((b"x-codex-turn-state", b"sticky"),)
    play = world.turn(headers=echoed) >> Started() << sends("alpha/m1") >> Failed(0, TransportFault.RESET)
    with_it, without = (any(n == b"x-codex-turn-state" for n, _ in s.request.headers) for s in play.sends)
    assert (with_it, without) == (True, False)
    unknown = sent(World(config()), headers=echoed)
    assert all(name != b"x-codex-turn-state" for name, _ in unknown.request.headers)


def test_user_is_removed_for_the_native_backend_only() -> None:
    world = World(config("delta/m", "alpha/m1", providers={"delta": CHATGPT}))
    play = world.turn(user="u", temperature=1, max_output_tokens=5) >> Started() << sends("delta/m")
    play >> Failed(0, TransportFault.RESET)
    native, public = (body_of(s) for s in play.sends)
    assert ("user" in native, native["temperature"], native["max_output_tokens"]) == (False, 1, 5)
    assert public["user"] == "u"


def test_codex_private_member_is_kept_for_its_own_vendor_only() -> None:
    items = [{"type": "message", "role": "user", PASSTHROUGH: {"a": 1}, "n": 2**70, "content": "x"}, "odd"]
    openai = provider("alpha", baseUrl="https://api.openai.com/v1")
    look_alike = provider("gamma", baseUrl="https://api.openai.com.example/v1")
    document = config("alpha/m1", "beta/m2", "gamma/m3", providers={"alpha": openai, "gamma": look_alike})
    play = World(document).turn(input=items) >> Started() << sends("alpha/m1")
    assert json.loads(play.sends[0].request.body)["input"] == items
    without = [{k: v for k, v in items[0].items() if k != PASSTHROUGH}, "odd"]  # type: ignore[union-attr]
    for attempt in (0, 1):
        play.skip() >> Failed(attempt, TransportFault.RESET)
        assert json.loads(play.sends[attempt + 1].request.body)["input"] == without


def test_variants_of_the_name_set_tier_and_effort() -> None:
    document = config(providers={"alpha": provider("alpha", reasoningEfforts=["low", "medium"])})
    assert body_of(sent(World(document), model="combo/main--fast"))["service_tier"] == "priority"
    world = World({**document, "cursorEffortRows": True})
    assert body_of(sent(world, model="combo/main--high"))["reasoning"] == {"effort": "medium"}
    none = World({**config(providers={"alpha": provider("alpha", reasoningEfforts=[])}), "cursorEffortRows": True})
    assert "reasoning" not in body_of(sent(none, model="combo/main--high"))
    kept = body_of(sent(none, model="combo/main--high", reasoning={"summary": "auto", "effort": "low"}))
    assert kept["reasoning"] == {"summary": "auto"}


def test_configured_fields_replace_the_clients() -> None:
    world = World(config(providers={"alpha": provider("alpha", headers={"X-Team": "ours"})}))
    send = sent(world, headers=((b"x-team", b"theirs"),))
    assert [value for name, value in send.request.headers if name.lower() == b"x-team"] == [b"ours"]


def test_a_models_own_adapter_decides_how_its_key_travels() -> None:
    row = provider("alpha", "C", modelAdapters={"m1": "anthropic"})
    send = sent(World(config("alpha/m1", providers={"alpha": row}), wire="M"))
    assert send.request.url.endswith("/v1/messages")
    assert auth_headers(send.request.provider, {}, None) == ((b"x-api-key", b"alpha-key"),)
    world = World(config("alpha/m1", providers={"alpha": row}), wire="M")
    first, second = (sent(world).request.provider for _ in range(2))
    assert first is second, "what is known of a way to a target is known of this provider"
    plain = sent(World(config("alpha/m2", providers={"alpha": row}), wire="C"))
    assert plain.request.provider is plain.target.provider


def test_only_private_targets_see_the_mark_of_this_proxy() -> None:
    for private in (True, False):
        base = "http://127.0.0.1:7101/v1" if private else "https://alpha.example/v1"
        alpha = provider("alpha", "R", baseUrl=base, allowPrivateNetwork=private)
        world = World(config("alpha/m1", providers={"alpha": alpha}))
        headers = sent(world, mark="combos-1").request.headers
        assert ((b"cdn-loop", b"combos-1") in headers) is private
