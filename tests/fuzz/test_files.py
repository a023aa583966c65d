"""Laws of what comes from elsewhere: recorded flows, token files, lists of models, quota reports, catalogs."""

import contextlib
import io
import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mitmproxy.io import FlowWriter
from mitmproxy.test import tflow

from combos.mitm import recorded
from combos.upstream.accounts import Account, Unusable, read_account
from combos.wire.model_list import ModelListError, parse_model_list
from combos.wire.quota_reports import SOURCES
from fuzzing import damaged, headers, json_values, law


def explained(raw: bytes) -> int:
    """Exit code of `ocx explain-flow` for a file with these bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "flows"
        path.write_bytes(raw)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
            code = recorded.main(
                [str(path), "--config", str(Path(folder) / "none.json"), *(["--json"] * (len(raw) % 2))]
            )
        shown.getvalue().encode()
        return code


metadata = st.one_of(
    json_values,
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("attempts", "combo", "client_flow", "attempt", "target"), json_values)
    ),
)


def storable(value: Any) -> bool:
    try:
        write(value, (), b"")
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def write(seen: Any, fields: Any, body: bytes) -> bytes:
    flow = tflow.tflow(resp=True)
    flow.request.path = "/v1/responses"
    flow.request.method = "POST"
    flow.metadata["combos"] = seen
    assert flow.response is not None
    flow.response.status_code = 200 + len(body) % 330
    flow.response.headers.fields = fields
    flow.response.raw_content = body
    file = io.BytesIO()
    FlowWriter(file).add(flow)
    return file.getvalue()


@law
@given(metadata.filter(storable), headers, damaged(), st.integers(0, 4000), st.one_of(st.none(), st.integers(0, 255)))
def test_a_file_of_flows_is_explained_or_refused(
    seen: Any, fields: Any, body: bytes, at: int, byte: int | None
) -> None:
    raw = bytearray(write(seen, fields, body))
    if byte is not None:
        raw[at % len(raw)] = byte
    assert explained(bytes(raw)) in (recorded.DONE, recorded.REFUSED)


@law
@given(st.binary(max_size=60))
def test_any_bytes_are_no_crash(raw: bytes) -> None:
    assert explained(raw) in (recorded.DONE, recorded.REFUSED)


@law
@given(
    st.one_of(
        json_values,
        st.dictionaries(
            st.sampled_from(["access_token", "account_id", "expires_at", "tokens", "claudeAiOauth"]),
            st.one_of(json_values, st.floats(), st.just("a.eyJleHAiOiAxZTk5OX0.b")),
        ),
    )
)
def test_a_token_file_is_an_account_or_unusable(document: Any) -> None:
    found = read_account(document)
    assert isinstance(found, Account | Unusable)
    if isinstance(found, Account):
        assert found.token.isprintable()


@law
@given(damaged(st.builds(json.dumps, st.fixed_dictionaries({"data": st.lists(json_values, max_size=4)}))))
def test_a_list_of_models_is_read_or_refused(body: bytes) -> None:
    try:
        rows = parse_model_list(body)
    except ModelListError:
        return
    assert len({row.id for row in rows}) == len(rows)


@law
@given(st.sampled_from(SOURCES), json_values, st.integers(0, 4_000_000_000_000))
def test_a_quota_report_is_read_or_left(source: Any, document: Any, at: int) -> None:
    keys = ("data", "limits", "rate_limit", "primary_window", "five_hour", "used_percent", "utilization", "resets_at")
    for shape in (document, dict.fromkeys(keys, document), {"data": {"limits": [document]}}):
        if isinstance(shape, dict):
            source.read(shape, at)
