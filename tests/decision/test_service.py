"""Which service is asked, with which key: TypeSafe's keys go to TypeSafe, a row's own key to that row."""

from collections.abc import Mapping
from typing import Any

import pytest

from combos.core.registry import Registry
from combos.core.secrets import Keychain
from combos.decision.gates import Backend, Closed, Gate
from combos.decision.service import (
    TYPESAFE_URL,
    Hosted,
    Issue,
    Secrets,
    Service,
    compatible,
    is_preset,
    typesafe,
    usable_row,
)
from decisions import registry, row

LOCAL = "http://127.0.0.1:11434/v1/systemone"
PRESET = {"adapter": "jev-decision", "baseUrl": TYPESAFE_URL, "liveModels": False}


def hosted_service(environ: Mapping[str, str], keychain: Keychain | None = None, **jev: Any) -> Service:
    made = registry(providers={"jev": {**PRESET, **jev}} if jev else {})
    return typesafe(made, Secrets(environ, keychain), Hosted())


class TestTypeSafe:
    def test_the_rows_key_comes_first(self) -> None:
        service = hosted_service({"MINE": "row-key", "TYPESAFE_API_KEY": "env-key"}, apiKey="${MINE}")
        assert service.credentials == ((b"Authorization", b"Bearer row-key"),)
        assert (service.backend, service.model, service.url) == (Backend.TYPESAFE, "jev-latest", TYPESAFE_URL)

    @pytest.mark.parametrize(
        ("environ", "key"),
        [
            ({"TYPESAFE_API_KEY": "one", "JEV_API_KEY": "two"}, b"Bearer one"),
            ({"TYPESAFE_API_KEY": "", "JEV_API_KEY": "two"}, b"Bearer two"),
        ],
    )
    @pytest.mark.parametrize("jev", [{}, {"liveModels": False}, {"apiKey": "$UNSET"}])
    def test_then_the_environment(self, environ: dict[str, str], key: bytes, jev: dict[str, Any]) -> None:
        assert hosted_service(environ, **jev).credentials == ((b"Authorization", key),)

    def test_a_key_in_the_keychain(self) -> None:
        service = hosted_service({}, {"jev": "kept"}.get, apiKey="keychain:jev")
        assert service.credentials == ((b"Authorization", b"Bearer kept"),)

    @pytest.mark.parametrize(
        ("environ", "jev"),
        [
            ({}, {}),
            ({}, {"apiKey": "$UNSET"}),
            ({"TYPESAFE_API_KEY": "k"}, {"disabled": True}),
            ({"TYPESAFE_API_KEY": "k"}, {"apiKey": "k", "disabled": True}),
            ({"OTHER": "k"}, {"liveModels": False}),
        ],
    )
    def test_no_key_no_service(self, environ: dict[str, str], jev: dict[str, Any]) -> None:
        with pytest.raises(Closed, match="missing_key"):
            hosted_service(environ, **jev)

    @pytest.mark.parametrize(
        "elsewhere",
        [
            {"baseUrl": "https://evil.example/v1/systemone"},
            {"baseUrl": TYPESAFE_URL + "/more/systemone"},
            {"adapter": "openai-chat"},
        ],
    )
    def test_a_row_that_points_elsewhere_lends_neither_key_nor_address(self, elsewhere: dict[str, Any]) -> None:
        with pytest.raises(Closed, match="missing_key"):
            hosted_service({}, apiKey="row-key", **elsewhere)
        service = hosted_service({"JEV_API_KEY": "env-key"}, apiKey="row-key", **elsewhere)
        assert (service.url, service.credentials) == (TYPESAFE_URL, ((b"Authorization", b"Bearer env-key"),))

    def test_its_address_is_never_a_private_one(self) -> None:
        service = hosted_service({}, apiKey="k", allowPrivateNetwork=True)
        assert service.provider.config.allow_private_network is False

    def test_a_trailing_slash_is_no_other_address(self) -> None:
        service = hosted_service({}, apiKey="k", baseUrl=TYPESAFE_URL + "/")
        assert service.url == TYPESAFE_URL
        assert is_preset(service.provider.config, Hosted())


def own(name: str = "tev", environ: Mapping[str, str] | None = None, **fields: Any) -> Service:
    made = registry(providers={"tev": row(LOCAL, **fields), "jev": {**PRESET, "apiKey": "jev-row-key"}})
    return compatible(name, made, Secrets(environ or {}, {"tev": "t", "tev/2": "t2", "jev": "j"}.get), Hosted())


class TestCompatible:
    def test_a_keyless_row_sends_no_key(self) -> None:
        service = own(environ={"TYPESAFE_API_KEY": "x", "JEV_API_KEY": "y", "TEV_API_KEY": "z"})
        assert service.credentials == ()
        assert (service.backend, service.url, service.model) == (Backend.SYSTEMONE, LOCAL, "tev1:4b")

    @pytest.mark.parametrize(
        ("written", "key"),
        [("plain", b"plain"), ("$MINE", b"mine"), ("keychain:tev", b"t"), ("keychain:tev/2", b"t2")],
    )
    def test_its_own_key(self, written: str, key: bytes) -> None:
        assert own(environ={"MINE": "mine"}, apiKey=written).credentials == ((b"Authorization", b"Bearer " + key),)

    @pytest.mark.parametrize(
        "written",
        [
            "${TYPESAFE_API_KEY}",
            "$TYPESAFE_API_KEY",
            "$JEV_API_KEY",
            "${JEV_API_KEY}",
            "keychain:jev",
            "keychain:other/2",
            "$UNSET",
            "keychain:tev/unknown",
            "$SAME",
            "jev-row-key",
        ],
    )
    def test_a_foreign_or_missing_key_is_not_replaced_by_none(self, written: str) -> None:
        environ = {"TYPESAFE_API_KEY": "typesafe", "JEV_API_KEY": "jev", "SAME": "typesafe"}
        with pytest.raises(Closed, match="missing_key"):
            own(environ=environ, apiKey=written)

    @pytest.mark.parametrize(
        ("name", "fields"),
        [
            ("nobody", {}),
            ("alpha", {}),
            ("tev", {"disabled": True}),
            ("tev", {"defaultModel": None}),
            ("tev", {"baseUrl": "http://127.0.0.1:1/v1/other"}),
        ],
    )
    def test_rows_that_cannot_be_asked(self, name: str, fields: dict[str, Any]) -> None:
        kept = {key: value for key, value in (row(LOCAL) | fields).items() if value is not None}
        made = registry(providers={"tev": kept})
        with pytest.raises(Closed, match="missing_key"):
            compatible(name, made, Secrets({}), Hosted())

    def test_the_first_of_its_models(self) -> None:
        kept = {key: value for key, value in row(LOCAL, models=["m1", "m2"]).items() if key != "defaultModel"}
        made = registry(providers={"tev": kept})
        assert compatible("tev", made, Secrets({}), Hosted()).model == "m1"

    def test_trailing_slashes_are_stripped(self) -> None:
        assert own(baseUrl=LOCAL + "//").url == LOCAL

    def test_an_address_that_the_configuration_would_refuse_is_not_asked(self) -> None:
        made = registry(providers={"tev": row(LOCAL)})
        provider = made.providers["tev"]
        open_ = provider.config.model_copy(update={"base_url": "http://models.example/v1/systemone"})
        table = {**made.providers, "tev": type(provider)("tev", open_)}
        opened = Registry(2, made.config, table, made.combos, made.aliases)
        with pytest.raises(Closed) as closed:
            compatible("tev", opened, Secrets({}), Hosted())
        assert closed.value.gate is Gate.NETWORK


@pytest.mark.parametrize(
    ("fields", "issue"),
    [
        ({"disabled": True}, "disabled"),
        ({"baseUrl": "https://x.example/v1"}, "endpoint"),
        ({"defaultModel": None}, "model"),
        ({"adapter": "openai-chat"}, "missing"),
    ],
)
def test_why_a_row_cannot_be_used(fields: dict[str, Any], issue: str) -> None:
    kept = {key: value for key, value in (row(LOCAL) | fields).items() if value is not None}
    with pytest.raises(Issue, match=issue):
        usable_row("tev", registry(providers={"tev": kept}))


def test_secrets_show_in_no_text() -> None:
    secrets = Secrets({"TYPESAFE_API_KEY": "sk-hidden"})
    assert "sk-hidden" not in repr(secrets)
    assert "sk-hidden" not in repr(typesafe(registry(), secrets, Hosted()))
