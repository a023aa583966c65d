"""Puts combos into a vendor's own model list. The vendor's rows keep their bytes; a list that is not understood too.

Decides which of the vendor's rows make room: those whose name a combo took, and native models that are switched off.
"""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import orjson

from combos.core.catalog import Catalog, CatalogRow
from combos.wire.catalog_anthropic import anthropic_row, claude_id
from combos.wire.catalog_codex import INSTRUCTIONS, ROUTED_PRIORITY, codex_row
from combos.wire.catalog_openai import openai_rows
from combos.wire.catalog_shape import ListRequest, Shape
from combos.wire.splice import SpliceError, members, replace_members

_ROWS_KEY = {Shape.OPENAI: "data", Shape.CODEX: "models", Shape.ANTHROPIC: "data"}
_ID_KEY = {Shape.OPENAI: "id", Shape.CODEX: "slug", Shape.ANTHROPIC: "id"}
_HIDE = orjson.dumps("hide")
_BLANKS = " \t\r\n"


class _VendorRow(NamedTuple):
    """One row: its name, the parsed object, the text it was written as."""

    id: str
    fields: Mapping[str, object]
    raw: bytes


class _NotUnderstood(Exception):  # noqa: N818
    """The answer is not a list of models in the expected shape."""


def merge_into(upstream_body: bytes, catalog: Catalog, wanted: ListRequest) -> bytes:
    """A vendor's list (without content coding) with the combos in it; unchanged when it is not understood.

    A row whose name is taken by a combo is replaced in its place, or removed if the combo is not listed. Disabled
    native rows are marked for Codex and removed elsewhere, and removed for Codex too while a native alias exists. An
    empty Codex list stays empty: Codex then shows the list it brings along, which any row would replace.
    """
    try:
        start, end, vendor = _rows_of(upstream_body, wanted.shape)
    except _NotUnderstood:
        return upstream_body
    if wanted.shape is Shape.CODEX and not vendor:
        return upstream_body
    rows = _merged(vendor, catalog, wanted, is_last_page=_is_last_page(upstream_body, wanted.shape))
    if rows == [row.raw for row in vendor]:
        return upstream_body
    return b"".join((upstream_body[:start], b"[", b",".join(rows), b"]", upstream_body[end:]))


def _merged(vendor: Sequence[_VendorRow], catalog: Catalog, wanted: ListRequest, *, is_last_page: bool) -> list[bytes]:
    mine = _combo_rows(vendor, catalog, wanted)
    placed: set[str] = set()
    rows: list[bytes] = []
    for row in vendor:
        if row.id in catalog.visibility.aliases or row.id in mine:
            rows += [] if row.id in placed else mine.get(row.id, [])
            placed.add(row.id)
        else:
            rows += _kept(row, catalog, wanted.shape)
    if is_last_page:
        rows += [raw for name, made in mine.items() if name not in placed for raw in made]
    return rows


def _kept(row: _VendorRow, catalog: Catalog, shape: Shape) -> list[bytes]:
    """A row of the vendor: as it is, marked as hidden, or gone."""
    visibility = catalog.visibility
    if not visibility.hides_native(row.id):
        return [row.raw]
    if shape is not Shape.CODEX or visibility.omits_hidden_natives:
        return []
    return [replace_members(row.raw, {"visibility": _HIDE})]


def _combo_rows(vendor: Sequence[_VendorRow], catalog: Catalog, wanted: ListRequest) -> dict[str, list[bytes]]:
    """The combos' rows by public name, in order. One combo may have two: a `--fast` sibling."""
    taken = {row.id for row in vendor} | {row.id for row in catalog.combos}
    match wanted.shape:
        case Shape.CODEX:
            return {row.id: [orjson.dumps(_codex_row(row, vendor))] for row in catalog.combos}
        case Shape.ANTHROPIC:
            names = [(row, claude_id(row) if wanted.encoded_ids else row.id) for row in catalog.combos]
            return {row.id: [orjson.dumps(anthropic_row(row, name))] for row, name in names if name is not None}
        case Shape.OPENAI:
            made = {row.id: openai_rows([row], fast_rows=catalog.fast_rows) for row in catalog.combos}
            return {
                name: [orjson.dumps(row) for row in rows if row["id"] == name or row["id"] not in taken]
                for name, rows in made.items()
            }


def _codex_row(row: CatalogRow, vendor: Sequence[_VendorRow]) -> dict[str, object]:
    """A native alias stands where the native model stood; other combos never come before the vendor's first choice."""
    replaced = next((other for other in vendor if other.id == row.id), None)
    priority = _priority(replaced) if replaced else None
    if priority is None:
        first = min((found for other in vendor if (found := _priority(other)) is not None), default=0)
        priority = max(ROUTED_PRIORITY, first + 1)
    return codex_row(row, priority=priority, instructions=_instructions(vendor))


def _priority(row: _VendorRow) -> int | None:
    value = row.fields.get("priority")
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _instructions(vendor: Sequence[_VendorRow]) -> str:
    """The agent prompt of the vendor's first model that works with ordinary tools, so that a combo behaves alike."""
    for row in vendor:
        text = row.fields.get("base_instructions")
        if isinstance(text, str) and text.strip() and not row.fields.get("use_responses_lite"):
            return text
    return INSTRUCTIONS


def _is_last_page(body: bytes, shape: Shape) -> bool:
    """Whether combos may be appended: a list in pages takes them once, at its end."""
    return shape is not Shape.ANTHROPIC or orjson.loads(body).get("has_more") is not True


def _rows_of(body: bytes, shape: Shape) -> tuple[int, int, list[_VendorRow]]:
    """Begin and end of the array of models, and its rows. Raises `_NotUnderstood`."""
    try:
        document = orjson.loads(body)
        spans = [member for member in members(body) if member.key == _ROWS_KEY[shape]]
    except (orjson.JSONDecodeError, SpliceError) as error:
        raise _NotUnderstood from error
    if len(spans) != 1 or not isinstance(document[spans[0].key], list):
        raise _NotUnderstood
    start, end = spans[0].value, spans[0].end
    rows = document[spans[0].key]
    texts = _elements(body[start:end].decode(), len(rows))
    return start, end, [_vendor_row(row, text, _ID_KEY[shape]) for row, text in zip(rows, texts, strict=True)]


def _vendor_row(fields: object, text: str, id_key: str) -> _VendorRow:
    name = fields.get(id_key) if isinstance(fields, dict) else None
    if not isinstance(fields, dict) or not isinstance(name, str) or not name:
        raise _NotUnderstood
    return _VendorRow(name, fields, text.encode())


def _elements(array: str, count: int) -> list[str]:
    """The texts of a valid JSON array's elements."""
    decoder = json.JSONDecoder()
    texts: list[str] = []
    position = 1
    for _ in range(count):
        while array[position] in _BLANKS or array[position] == ",":
            position += 1
        try:
            _, end = decoder.raw_decode(array, position)
        except (ValueError, RecursionError) as error:
            raise _NotUnderstood from error
        texts.append(array[position:end])
        position = end
    return texts
